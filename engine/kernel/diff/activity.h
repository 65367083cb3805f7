// Which values of a kernel a derivative is about. Inside of this folder alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <unordered_map>
#include <vector>

#include "engine/kernel/ir.h"

namespace eagle::kernel::diff {

class Activity {
public:
  // By argument: what is differentiated by, and what is committed without anybody asking (none: all is
  // asked).
  Activity(const Kernel& kernel, std::vector<bool> arguments, const std::vector<bool>& unasked = {});

  // Whether a small change of an argument can change the value: it is real, and something that has a
  // derivative leads from the argument to it.
  [[nodiscard]] bool varied(ValueId value) const { return varied_[value]; }
  [[nodiscard]] bool varied_argument(std::size_t argument) const { return arguments_[argument]; }
  // A sum of products of values with themselves: its square root is a norm.
  [[nodiscard]] bool is_square_sum(ValueId value) const { return squares_[value]; }

  // For a loop: whether what the loop carries as value `i` gets an adjoint in every trip, whatever is taken.
  [[nodiscard]] bool certain(const Op& loop, std::size_t i) const { return certain_.at(&loop)[i]; }
  // The varied values from outside of the region that ops inside of it use.
  [[nodiscard]] std::set<ValueId> captured(const Region& region) const;
  // Whether something inside adds a varied value to an accumulator.
  [[nodiscard]] bool accumulates(const Op& op) const;

private:
  bool spread(const Region& region);
  bool spread_op(const Op& op);
  bool vary(ValueId value, bool holds);
  void find_squares(const Region& region);
  // One pass backwards; whether a loop turned out to be less certain than was assumed.
  bool weaken(const Region& region, std::vector<bool>& sure);

  const Kernel& kernel_;
  std::vector<bool> arguments_;
  std::vector<bool> varied_;
  std::vector<bool> squares_;
  std::vector<std::uint32_t> home_;  // by value: the region that defines it
  std::unordered_map<const Region*, std::uint32_t> numbers_;
  std::unordered_map<const Op*, std::vector<bool>> certain_;

  void number(const Region& region);
  void collect(const Region& region, std::set<ValueId>& inside, std::set<ValueId>& used) const;
};

}  // namespace eagle::kernel::diff
