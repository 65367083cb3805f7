// What the derivative of each operation is, in words: the source of the tables in docs/manual
// (docs/tools/gradients.py) and of the test that every operation has a rule. rules.cpp is what they mean.
//
//   X(opcode, derivative by each operand, ties and ends)
#pragma once

// clang-format off
#define EAGLE_DERIVATIVES(X)                                                                                         \
  X(constant, "none", "")                                                                                            \
  X(sample_index, "none", "an integer")                                                                              \
  X(n_samples, "none", "an integer")                                                                                 \
  X(step_index, "none", "an integer")                                                                                \
  X(add, "1, 1", "")                                                                                                 \
  X(sub, "1, -1", "")                                                                                                \
  X(mul, "`b`, `a`", "")                                                                                             \
  X(div, "`1 / b`, `-(a / b) / b`", "as IEEE 754 at b = 0")                                                          \
  X(neg, "-1", "")                                                                                                   \
  X(abs, "1 for `x >= 0`, else -1", "1 at both zeros")                                                               \
  X(min, "1 for the operand given, 0 for the other", "a tie gives `a`; a NaN gives the other operand")               \
  X(max, "1 for the operand given, 0 for the other", "a tie gives `a`; a NaN gives the other operand")               \
  X(sqrt, "`1 / (2 sqrt x)`", "infinite at 0; 0 at 0 where x is a sum of squares, which is a norm")                  \
  X(floor_div, "none", "integers")                                                                                   \
  X(modulo, "none", "integers")                                                                                      \
  X(shift_left, "none", "integers")                                                                                  \
  X(shift_right, "none", "integers")                                                                                 \
  X(bit_and, "none", "integers")                                                                                     \
  X(bit_or, "none", "integers")                                                                                      \
  X(bit_xor, "none", "integers")                                                                                     \
  X(bit_not, "none", "integers")                                                                                     \
  X(eq, "none", "a condition")                                                                                       \
  X(ne, "none", "a condition")                                                                                       \
  X(lt, "none", "a condition")                                                                                       \
  X(le, "none", "a condition")                                                                                       \
  X(gt, "none", "a condition")                                                                                       \
  X(ge, "none", "a condition")                                                                                       \
  X(logical_and, "none", "a condition")                                                                              \
  X(logical_or, "none", "a condition")                                                                               \
  X(logical_xor, "none", "a condition")                                                                              \
  X(logical_not, "none", "a condition")                                                                              \
  X(select, "of the side taken", "the other side adds nothing, not even a NaN")                                      \
  X(convert, "1 between reals", "0 from and to integers and conditions")                                             \
  X(if_, "of the branch taken", "the other branch adds nothing, not even a NaN")                                     \
  X(while_, "of the trips taken", "the number of trips counts as fixed")                                             \
  X(switch_, "of the case taken", "the others add nothing, not even a NaN")                                          \
  X(primitive, "what its author says", "the rule of the other direction is not guessed: a primitive without one is refused")  \
  X(gather, "1 by the element looked up, 0 by the indices", "an index outside: of the nearest element, which was read")     \
  X(length, "none", "an integer")                                                                                    \
  X(accum_add, "1", "0 where nothing was added because the index is outside")                                        \
  X(compose, "1 by its component", "")                                                                               \
  X(extract, "1 by that component, 0 by the others", "")                                                             \
  X(fma, "`b`, `a`, 1", "")                                                                                          \
  X(pow, "`y x^(y-1)`, `x^y ln x`", "d/dx = 0 at y = 0; d/dy = 0 at x = 0, y > 0; d/dy is NaN for x < 0")            \
  X(rsqrt, "`-rsqrt(x)^3 / 2`", "infinite at 0")                                                                     \
  X(cbrt, "`1 / (3 cbrt(x)^2)`", "infinite at 0")                                                                    \
  X(hypot, "`x / h`, `y / h`", "0 at (0, 0)")                                                                        \
  X(exp, "`exp x`", "")                                                                                              \
  X(exp2, "`exp2(x) ln 2`", "")                                                                                      \
  X(expm1, "`exp x`", "")                                                                                            \
  X(log, "`1 / x`", "infinite at 0")                                                                                 \
  X(log2, "`1 / (x ln 2)`", "infinite at 0")                                                                         \
  X(log10, "`1 / (x ln 10)`", "infinite at 0")                                                                       \
  X(log1p, "`1 / (1 + x)`", "infinite at -1")                                                                        \
  X(erf, "`2 / sqrt(pi) exp(-x^2)`", "")                                                                             \
  X(erfc, "`-2 / sqrt(pi) exp(-x^2)`", "")                                                                           \
  X(sin, "`cos x`", "")                                                                                              \
  X(cos, "`-sin x`", "")                                                                                             \
  X(tan, "`1 + tan(x)^2`", "")                                                                                       \
  X(asin, "`1 / sqrt(1 - x^2)`", "infinite at -1 and 1")                                                             \
  X(acos, "`-1 / sqrt(1 - x^2)`", "infinite at -1 and 1")                                                            \
  X(atan, "`1 / (1 + x^2)`", "")                                                                                     \
  X(atan2, "`x / (x^2 + y^2)`, `-y / (x^2 + y^2)`", "0 at (0, 0)")                                                   \
  X(sinh, "`cosh x`", "")                                                                                            \
  X(cosh, "`sinh x`", "")                                                                                            \
  X(tanh, "`1 - tanh(x)^2`", "")                                                                                     \
  X(asinh, "`1 / sqrt(x^2 + 1)`", "")                                                                                \
  X(acosh, "`1 / sqrt(x^2 - 1)`", "infinite at 1")                                                                   \
  X(atanh, "`1 / (1 - x^2)`", "infinite at -1 and 1")                                                                \
  X(floor, "0", "at the steps too")                                                                                  \
  X(ceil, "0", "at the steps too")                                                                                   \
  X(trunc, "0", "at the steps too")                                                                                  \
  X(round, "0", "at the steps too")                                                                                  \
  X(rint, "0", "at the steps too")                                                                                   \
  X(fmod, "1, `-trunc(x / y)`", "at the steps too")                                                                  \
  X(remainder, "1, `-floor(x / y)`", "at the steps too")                                                             \
  X(floor_quotient, "0", "at the steps too")                                                                         \
  X(sign, "0", "at 0 too")                                                                                           \
  X(copysign, "`sign(x) sign(y)`, 0", "sign(x) is 1 at both zeros, sign(y) that of the zero; 1 for a NaN")           \
  X(fdim, "1, -1 where positive, else 0", "0 at x = y")                                                              \
  X(clip, "1 for the operand given, 0 for the others", "x on the closed interval")                                   \
  X(isnan, "none", "a condition")                                                                                    \
  X(isinf, "none", "a condition")                                                                                    \
  X(isfinite, "none", "a condition")                                                                                 \
  X(random_words, "none", "random numbers count as constants")
// clang-format on
