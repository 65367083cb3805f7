"""Kernels and graphs inside of programs of other packages: ``eagle.frameworks.torch`` and ``eagle.frameworks.jax``.

Each is imported by its own name, and needs its package: ``import eagle.frameworks.jax``.
"""
