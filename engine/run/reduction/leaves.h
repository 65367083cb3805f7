// The leaves of each reduction: what one does with a few hundred consecutive samples, in vectors.
//
// A kind of reduction says how its elements are stored (`Element`), what a node holds (`Value`), how many
// samples a leaf has, and the three functions `leaf` (of 1 to leaf_samples samples), `combine` and `finish`.
// The order of a floating-point sum is a contract (docs/manual/accumulation.md); the others do not depend on
// it.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "engine/run/reduction/lanes.h"
#include "engine/run/reduction/reduction.h"

namespace eagle::run {

// Leaves of 256: b[i] += b[i + s] for s = 128, 64, ..., 1. Elements that are missing are -0.0, which changes
// nothing that it is added to.
template <typename T>
struct Sum {
  using Element = T;
  using Value = T;
  using Vector = lanes::Lanes<T>;
  static constexpr std::int64_t leaf_samples = plain_leaf_samples;

  EAGLE_INLINE static T leaf(const T* x, std::int64_t count) {
    alignas(64) T padded[leaf_samples];
    if (count < leaf_samples) {
      std::copy(x, x + count, padded);
      std::fill(padded + count, padded + leaf_samples, T(-0.0));
      x = padded;
    }
    Vector sums;
    halve<1>(x, sums);
    return lanes::halved_sum<T, sizeof(Vector)>(sums);
  }
  EAGLE_INLINE static T combine(T left, T right) { return left + right; }
  EAGLE_INLINE static T finish(T value) { return value; }

private:
  // The first vector of those that are left when there are `Vectors` of them.
  template <int Vectors>
  EAGLE_INLINE static void halve(const T* x, Vector& sum) {
    if constexpr (Vectors * lanes::width<T> == leaf_samples) {
      lanes::load(x, sum);
    } else {
      Vector other;
      halve<2 * Vectors>(x, sum);
      halve<2 * Vectors>(x + Vectors * lanes::width<T>, other);
      sum += other;
    }
  }
};

template <typename T>
struct HighLow {
  T high = 0;
  T low = 0;  // what rounding lost of `high`
};

// Leaves of 4,096: slot i of 256 adds samples i, i + 256, ... with Neumaier's correction [A. Neumaier, ZAMM
// 54 (1974) 39]; the slots are then halved like the leaves above, the errors added. A missing element adds
// nothing. Neumaier's error term is exact, and so is that of Knuth's TwoSum: `Branch` says which is faster,
// not what comes out.
template <typename T, bool Branch>
struct CompensatedSum {
  using Element = T;
  using Value = HighLow<T>;
  using Vector = lanes::Lanes<T>;
  static constexpr std::int64_t leaf_samples = 4096;
  static constexpr std::int64_t slots = 256;
  static constexpr int vectors = slots / lanes::width<T>;

  // `next`: of a whole leaf, the one that comes after it, or null. Its lines are asked for meanwhile: the
  // strides here are none that a processor sees ahead.
  EAGLE_INLINE static Value leaf(const T* x, std::int64_t count, const T* next = nullptr) {
    const std::int64_t rows = count / slots;
    const std::int64_t more = count % slots;
    alignas(64) T last[slots];
    if (more > 0) {
      std::copy(x + rows * slots, x + count, last);
      std::fill(last + more, last + slots, T(-0.0));
    }
    Vector high[vectors], low[vectors];
    for (int v = 0; v < vectors; v += group) {
      const std::int64_t first = v * lanes::width<T>;
      add_rows(x + first, rows, more > 0 ? last + first : nullptr,
               next == nullptr ? nullptr : next + first * rows, high + v, low + v);
    }
    for (int s = vectors / 2; s >= 1; s /= 2) {
      for (int v = 0; v < s; ++v) two_sum(high[v], low[v], high[v + s], low[v + s]);
    }
    T h[lanes::width<T>], l[lanes::width<T>];
    std::memcpy(h, high, sizeof(h));
    std::memcpy(l, low, sizeof(l));
    for (int s = lanes::width<T> / 2; s >= 1; s /= 2) {
      for (int i = 0; i < s; ++i) two_sum(h[i], l[i], h[i + s], l[i + s]);
    }
    return {h[0], l[0]};
  }
  EAGLE_INLINE static Value combine(Value left, Value right) {
    two_sum(left.high, left.low, right.high, right.low);
    return left;
  }
  EAGLE_INLINE static T finish(Value value) {
    return std::isfinite(value.high) ? value.high + value.low : value.high;
  }

private:
  static constexpr int group = 2;  // vectors side by side; with their errors they stay in registers

  EAGLE_INLINE static void add_rows(const T* x, std::int64_t rows, const T* last, const T* next, Vector* high,
                                    Vector* low) {
    Vector h[group] = {}, l[group] = {};
    for (std::int64_t row = 0; row < rows; ++row, x += slots) {
      if (next != nullptr) {
        // Into the second cache: the first one is full of this leaf.
        for (int v = 0; v < group; ++v) __builtin_prefetch(next + (group * row + v) * lanes::width<T>, 0, 2);
      }
      add_row(x, h, l);
    }
    if (last != nullptr) add_row(last, h, l);
    for (int v = 0; v < group; ++v) high[v] = h[v];
    for (int v = 0; v < group; ++v) low[v] = l[v];
  }

  EAGLE_INLINE static void add_row(const T* x, Vector* high, Vector* low) {
    for (int v = 0; v < group; ++v) {
      Vector added;
      lanes::load(x + v * lanes::width<T>, added);
      if constexpr (Branch) {
        add_rounding_by_size(high[v], added, low[v]);
      } else {
        add_rounding(high[v], added, low[v]);
      }
      high[v] += added;
    }
  }

  template <typename Number>  // T or a vector of it
  EAGLE_INLINE static void two_sum(Number& high, Number& low, const Number& other_high,
                                   const Number& other_low) {
    low += other_low;
    add_rounding(high, other_high, low);
    high += other_high;
  }

  // Adds what a + b loses by rounding: the larger one less the sum is exact, and so is what the smaller one
  // adds.
  EAGLE_INLINE static void add_rounding_by_size(const Vector& a, const Vector& b, Vector& low) {
    using Bits = lanes::Lanes<lanes::Integer<T>>;
    const Bits magnitude = Bits{} + std::numeric_limits<lanes::Integer<T>>::max();
    const auto a_is_larger = (Vector)((Bits)a & magnitude) >= (Vector)((Bits)b & magnitude);
    const Vector larger = a_is_larger ? a : b;
    const Vector smaller = a_is_larger ? b : a;
    low += (larger - (a + b)) + smaller;
  }

  // The same by Knuth's TwoSum.
  template <typename Number>
  EAGLE_INLINE static void add_rounding(const Number& a, const Number& b, Number& low) {
    const Number sum = a + b;
    const Number of_b = sum - a;
    low += (a - (sum - of_b)) + (b - of_b);
  }
};

// Integers wrap, so any order gives the same.
template <typename T>
struct IntegerSum {
  using Element = T;
  using Value = T;
  using Unsigned = std::make_unsigned_t<T>;
  static constexpr std::int64_t leaf_samples = plain_leaf_samples;

  EAGLE_INLINE static T leaf(const T* x, std::int64_t count) {
    Unsigned sum = 0;
    for (std::int64_t i = 0; i < count; ++i) sum += static_cast<Unsigned>(x[i]);
    return static_cast<T>(sum);
  }
  EAGLE_INLINE static T combine(T left, T right) {
    return static_cast<T>(static_cast<Unsigned>(left) + static_cast<Unsigned>(right));
  }
  EAGLE_INLINE static T finish(T value) { return value; }
};

template <typename T, bool Largest>
struct IntegerExtreme {
  using Element = T;
  using Value = T;
  static constexpr std::int64_t leaf_samples = plain_leaf_samples;

  EAGLE_INLINE static T leaf(const T* x, std::int64_t count) {
    T best = x[0];
    for (std::int64_t i = 1; i < count; ++i) best = combine(best, x[i]);
    return best;
  }
  EAGLE_INLINE static T combine(T left, T right) {
    return (Largest ? right > left : right < left) ? right : left;
  }
  EAGLE_INLINE static T finish(T value) { return value; }
};

// A NaN anywhere gives NaN, and +0 is greater than -0. The bits of a number that is not NaN, those after the
// sign flipped where it is negative, are ordered as integers are.
template <typename T, bool Largest>
struct Extreme {
  using Element = T;
  using Bits = lanes::Integer<T>;
  struct Value {
    Bits best = 0;
    Bits nan = 0;  // not 0: there was a NaN
  };
  static constexpr std::int64_t leaf_samples = plain_leaf_samples;

  EAGLE_INLINE static Value leaf(const T* x, std::int64_t count) {
    Value value{ordered(x[0]), 0};
    Bits nan = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const Bits bits = ordered(x[i]);
      value.best = better(value.best, bits);
      nan |= (x[i] != x[i]) ? Bits{1} : Bits{0};
    }
    value.nan = nan;
    return value;
  }
  EAGLE_INLINE static Value combine(Value left, Value right) {
    return {better(left.best, right.best), left.nan | right.nan};
  }
  EAGLE_INLINE static T finish(Value value) {
    return value.nan != 0 ? std::numeric_limits<T>::quiet_NaN() : std::bit_cast<T>(flipped(value.best));
  }

private:
  EAGLE_INLINE static Bits flipped(Bits bits) {
    return bits ^ ((bits >> (8 * sizeof(Bits) - 1)) & std::numeric_limits<Bits>::max());
  }
  EAGLE_INLINE static Bits ordered(T x) { return flipped(std::bit_cast<Bits>(x)); }
  EAGLE_INLINE static Bits better(Bits a, Bits b) { return (Largest ? b > a : b < a) ? b : a; }
};

// Bools are bytes that are 0 or not.
template <bool All>
struct Logic {
  using Element = std::uint8_t;
  using Value = std::uint8_t;  // 0 or 1
  static constexpr std::int64_t leaf_samples = plain_leaf_samples;

  EAGLE_INLINE static Value leaf(const Element* x, std::int64_t count) {
    Element found = 0;  // a zero, where all are asked for; else something else
    for (std::int64_t i = 0; i < count; ++i) found |= static_cast<Element>((x[i] == 0) == All);
    return (found != 0) != All ? 1 : 0;
  }
  EAGLE_INLINE static Value combine(Value left, Value right) {
    return All ? static_cast<Value>(left & right) : static_cast<Value>(left | right);
  }
  EAGLE_INLINE static Element finish(Value value) { return value; }
};

}  // namespace eagle::run
