// Reductions of planes in one fixed order: the same bits for any team and any cut.
//
//   const Reducer* sum = find_reducer({kernel::ReduceOp::sum, plane::DType::f64});
//   Partial partial;
//   sum->append(partial, x, 0, n);          // or piece by piece, or in parts that are combined
//   sum->finish(partial, out);
//
// docs/manual/accumulation.md gives the order and the rules for NaN and zeros. Pure functions of bytes; any
// thread, which has a kernel::FloatEnvironment. Nothing is allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "engine/kernel/ir.h"
#include "engine/plane/view.h"
#include "engine/run/reduction/partial.h"

namespace eagle::run {

// Samples of a leaf of everything but compensated sums, whose leaves are larger.
constexpr std::int64_t plain_leaf_samples = 256;

// What is reduced and how. Not all combinations exist: see kernel::can_reduce.
struct Reduction {
  kernel::ReduceOp op = kernel::ReduceOp::sum;
  kernel::Scalar scalar = kernel::Scalar::f64;
  bool compensated = false;  // sums of reals: rounding errors are kept and added at the end
};

class Reducer {
public:
  // Appends samples [base, base + count) of a row to a partial that ends at sample `base`, which is a
  // multiple of `leaf_samples`; and so is `base + count`, except at the end of the row. `x` is where sample
  // `base` lies, at any alignment. count >= 1.
  void append(Partial& partial, const std::byte* x, std::int64_t base, std::int64_t count) const {
    append_(partial, x, base, count);
  }
  // Appends what comes after it in the row.
  void append(Partial& partial, const Partial& later) const;
  void append(Partial& partial, const Partial::Node& later) const;
  // Stores the result of a whole row of at least one sample.
  void finish(const Partial& partial, std::byte* out) const;

  [[nodiscard]] std::int64_t leaf_samples() const { return leaf_samples_; }

  using Append = void (*)(Partial&, const std::byte*, std::int64_t, std::int64_t);
  using Combine = Cell (*)(Cell, Cell);
  using Finish = void (*)(Cell, std::byte*);
  constexpr Reducer(Append with_append, Combine with_combine, Finish with_finish, std::int64_t leaf)
      : append_(with_append), combine_(with_combine), finish_(with_finish), leaf_samples_(leaf) {}

private:
  Append append_;
  Combine combine_;
  Finish finish_;
  std::int64_t leaf_samples_;
};

// For the best vector instructions of this CPU; lives for ever. The combination exists.
const Reducer& reducer_for(const Reduction& reduction);

// The levels of vector instructions that this CPU has, the plain one first; for tests that compare them.
std::span<const std::string_view> vector_levels();
const Reducer& reducer_for(const Reduction& reduction, std::string_view level);

}  // namespace eagle::run
