// Planes of a kernel and of its derivatives, and products with their Jacobian, for the tests of this folder.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "engine/kernel/diff/derivative.h"
#include "engine/kernel/interpret.h"
#include "engine/kernel/random_kernel.h"

namespace eagle::kernel::diff {

// One plane an argument, component by component; a param is a plane of one element.
class Data {
public:
  // `lengths`, by argument: elements of tables and accumulators without axes.
  Data(const Kernel& kernel, std::int64_t samples, const std::vector<std::int64_t>& lengths = {})
      : kernel_(&kernel) {
    for (std::size_t a = 0; a < kernel.arguments.size(); ++a) {
      const Argument& argument = kernel.arguments[a];
      std::int64_t length = samples;
      if (argument.role == Role::param || argument.role == Role::reduce) length = 1;
      if (is_indexed(argument.role)) {
        length = argument.axes.empty() && a < lengths.size() ? lengths[a] : 1;
        for (const Axis& axis : argument.axes) length *= axis.extent;
      }
      lengths_.push_back(length);
      bytes_.emplace_back(static_cast<std::size_t>(length * argument.type.components() * size(a)));
    }
  }

  [[nodiscard]] const Kernel& kernel() const { return *kernel_; }
  [[nodiscard]] std::int64_t length(std::size_t a) const { return lengths_[a]; }
  // Elements of all components.
  [[nodiscard]] std::size_t cells(std::size_t a) const {
    return bytes_[a].size() / static_cast<std::size_t>(size(a));
  }
  [[nodiscard]] bool is_real(std::size_t a) const {
    return kernel::is_real(kernel_->arguments[a].type.scalar);
  }

  [[nodiscard]] double real(std::size_t a, std::size_t cell) const {
    if (kernel_->arguments[a].type.scalar == Scalar::f32) return read<float>(a, cell);
    return read<double>(a, cell);
  }
  void set_real(std::size_t a, std::size_t cell, double value) {
    if (kernel_->arguments[a].type.scalar == Scalar::f32) {
      write(a, cell, static_cast<float>(value));
    } else {
      write(a, cell, value);
    }
  }
  void set_bits(std::size_t a, std::size_t cell, std::uint64_t bits) {
    std::memcpy(bytes_[a].data() + cell * static_cast<std::size_t>(size(a)), &bits,
                static_cast<std::size_t>(size(a)));
  }
  std::vector<std::byte>& bytes(std::size_t a) { return bytes_[a]; }
  [[nodiscard]] const std::vector<std::byte>& bytes(std::size_t a) const { return bytes_[a]; }

  InterpreterResult launch(std::int64_t samples, std::int64_t steps = 1) {
    std::vector<InterpreterPlane> planes;
    for (std::size_t a = 0; a < bytes_.size(); ++a)
      planes.push_back({bytes_[a].data(), lengths_[a] * size(a), lengths_[a]});
    return interpret_launch(*kernel_, planes, samples, steps, {0, samples, 0});
  }

private:
  [[nodiscard]] std::int64_t size(std::size_t a) const { return bytes_of(kernel_->arguments[a].type.scalar); }
  template <typename T>
  [[nodiscard]] T read(std::size_t a, std::size_t cell) const {
    T value;
    std::memcpy(&value, bytes_[a].data() + cell * sizeof(T), sizeof(T));
    return value;
  }
  template <typename T>
  void write(std::size_t a, std::size_t cell, T value) {
    std::memcpy(bytes_[a].data() + cell * sizeof(T), &value, sizeof(T));
  }

  const Kernel* kernel_;
  std::vector<std::int64_t> lengths_;
  std::vector<std::vector<std::byte>> bytes_;
};

// One number for each cell of each real argument of a kernel; empty for the others.
using Direction = std::vector<std::vector<double>>;

inline Direction direction_like(const Data& data, const std::function<double()>& number) {
  Direction direction(data.kernel().arguments.size());
  for (std::size_t a = 0; a < direction.size(); ++a) {
    if (!data.is_real(a)) continue;
    for (std::size_t cell = 0; cell < data.cells(a); ++cell) direction[a].push_back(number());
  }
  return direction;
}

inline bool is_input(const Argument& argument) {
  return is_differentiable(argument) || argument.role == Role::accum;
}
inline bool is_result(const Argument& argument) {
  return kernel::is_real(argument.type.scalar) &&
         (is_committed(argument.role) || argument.role == Role::accum);
}

// A derivative's planes for these inputs: `of` is the kernel's data before its step; planes of adjoints or
// tangents get the numbers of `direction`, or 0 where their old values have no part in the result.
inline Data data_for(const Derivative& derivative, const Data& of, std::int64_t samples,
                     const Direction& direction) {
  std::vector<std::int64_t> lengths;
  for (const Plane& plane : derivative.planes) {
    const bool one = plane.part != Part::step && of.kernel().arguments[plane.argument].role == Role::reduce;
    lengths.push_back(plane.part == Part::step ? 1 : one ? 1 : of.length(plane.argument));
  }
  Data data(derivative.kernel, samples, lengths);
  for (std::size_t a = 0; a < derivative.planes.size(); ++a) {
    const Plane& plane = derivative.planes[a];
    if (plane.part == Part::step) continue;
    if (plane.part == Part::primal) {
      data.bytes(a) = of.bytes(plane.argument);
      continue;
    }
    const Role role = derivative.kernel.arguments[a].role;
    const bool in =
        role == Role::read || role == Role::mutable_ || role == Role::table || role == Role::param;
    for (std::size_t cell = 0; in && cell < data.cells(a); ++cell)
      data.set_real(a, cell, direction[plane.argument][cell]);
  }
  return data;
}

}  // namespace eagle::kernel::diff
