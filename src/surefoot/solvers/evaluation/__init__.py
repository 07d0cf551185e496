"""Evaluation of policies: solves ``v = r + discount P v``, in one model or in many.

`evaluator` chooses how a model's policies are evaluated; `dense` solves full matrices,
`system_kernels` all others. `draws` identifies models drawn from a posterior, `returns` asks an
engine for a policy's return in each of them; `robust` evaluates against nature.
"""
