// Random numbers on builder values, spelled out in random_words and plain operations, so that the verifier, every
// backend and the derivatives see those only.
//
// All depend on (seed, counter, the sample's index in the whole ensemble) and nothing else: the same number for the
// same three, wherever and how often it is asked for. `seed` and `counter` are i64, taken as the 64 bits they are.
// Each function says how many words it uses, from `counter` on; a caller who wants independent numbers moves the
// counter on by that many. Reals are made in f64 and rounded once to the kernel's type.
// docs/manual/accumulation.md is the manual page.
#pragma once

#include <string_view>
#include <vector>

#include "engine/kernel/builder.h"

namespace eagle::kernel::random {

using Value = KernelBuilder::Value;

// (w + 1) 2^-32, over (0, 1]. One word.
Value uniform(KernelBuilder& b, Value seed, Value counter);
// low + (high - low) uniform, over (low, high] and never outside, whatever rounds. One word.
Value uniform_between(KernelBuilder& b, Value seed, Value counter, Value low, Value high);
// low + floor(w (high - low) 2^-32): low, ..., high - 1, each as likely as any other to within 2^-32. `low` where
// high <= low. One word.
Value uniform_int(KernelBuilder& b, Value seed, Value counter, Value low, Value high);
// The normal distribution by Box and Muller. With a = w0 xor (w1 << 21) and b = w2 xor (w3 << 21), numbers of 53 bits:
// u = a 2^-53 + 2^-54, v = b 2^-52 + 2^-53, sqrt(-2 ln u) sin(pi v). Four words.
Value normal(KernelBuilder& b, Value seed, Value counter);
// mean + sd normal. Four words.
Value normal_of(KernelBuilder& b, Value seed, Value counter, Value mean, Value sd);
// exp(normal_of). Four words.
Value lognormal(KernelBuilder& b, Value seed, Value counter, Value mean, Value sd);
// -ln uniform, which is +0 for uniform = 1. One word.
Value exponential(KernelBuilder& b, Value seed, Value counter);
// scale exponential: with that mean. One word.
Value exponential_of(KernelBuilder& b, Value seed, Value counter, Value scale);
// mean + factor z, where z_j is the normal number at `counter` + 4 j and `factor` a matrix whose product with its
// transpose is the covariance: its lower triangle alone is looked at. Component i is
// mean_i + (factor_i0 z_0 + ... + factor_ii z_i), added in this order. 4 n words.
Value multivariate_normal(KernelBuilder& b, Value seed, Value counter, Value mean, Value factor);
// uniform <= p: never for p = 0, always for p = 1. A bool. One word.
Value bernoulli(KernelBuilder& b, Value seed, Value counter, Value p);

// By the names of eagle.random, with so many operands as that has; refused through the builder's sticky status.
Value call(KernelBuilder& b, std::string_view name, const std::vector<Value>& operands);

}  // namespace eagle::kernel::random
