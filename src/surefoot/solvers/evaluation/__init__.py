"""The one room that evaluates policies: ``v = r + discount P v``, in one model or in many.

`evaluator` chooses how a model's policies are evaluated, `dense` solves full matrices,
`system_kernels` all others. `draws` says which models of a posterior are meant, `returns` asks an
engine for a policy's return in each of them; `robust` evaluates against nature.
"""
