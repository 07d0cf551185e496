"""How large a set must be: credible and frequentist sizes, weights and shapes."""
