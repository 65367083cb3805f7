#include "engine/kernel/random_planes.h"

#include <cmath>
#include <cstdio>
#include <cstring>

namespace eagle::kernel {
namespace {

std::int64_t length_of(const Argument& argument, std::int64_t samples, Random& random) {
  if (argument.role == Role::param) return 1;
  if (argument.role == Role::reduce) return 1;
  if (!is_indexed(argument.role)) return samples;
  if (argument.axes.empty()) return static_cast<std::int64_t>(1 + random.below(9));
  std::int64_t length = 1;
  for (const Axis& axis : argument.axes) length *= axis.extent;
  return length;
}

void fill(const Argument& argument, std::vector<std::byte>& bytes, Random& random) {
  const auto size = static_cast<std::size_t>(bytes_of(argument.type.scalar));
  for (std::size_t at = 0; at < bytes.size(); at += size) {
    std::uint64_t bits = random_bits(argument.type.scalar, random);
    if (argument.role == Role::terminated) bits = random.chance(20) ? 1 : 0;
    std::memcpy(bytes.data() + at, &bits, size);
  }
}

template <typename Real>
bool holds_nan(const std::byte* at) {
  Real value = 0;
  std::memcpy(&value, at, sizeof value);
  return std::isnan(value);
}

bool is_nan(Scalar scalar, const std::byte* at) {
  if (scalar == Scalar::f64) return holds_nan<double>(at);
  return scalar == Scalar::f32 && holds_nan<float>(at);
}

std::string difference(const Argument& argument, std::size_t at, const std::byte* found,
                       const std::byte* expected) {
  const auto size = static_cast<std::size_t>(bytes_of(argument.type.scalar));
  std::uint64_t found_bits = 0, expected_bits = 0;
  std::memcpy(&found_bits, found, size);
  std::memcpy(&expected_bits, expected, size);
  char text[96];
  std::snprintf(text, sizeof text, " at byte %zu: found %016llx, expected %016llx", at,
                static_cast<unsigned long long>(found_bits), static_cast<unsigned long long>(expected_bits));
  return "argument " + argument.name + text;
}

}  // namespace

std::vector<std::byte*> Planes::addresses() {
  std::vector<std::byte*> all;
  for (std::size_t a = 0; a < bytes.size(); ++a)
    all.push_back(bytes[a].empty() ? nullptr : bytes[a].data() + element_bytes[a]);
  return all;
}

std::vector<InterpreterPlane> Planes::interpreter_planes() {
  std::vector<InterpreterPlane> all;
  for (std::size_t a = 0; a < bytes.size(); ++a) {
    std::byte* param = reinterpret_cast<std::byte*>(&params[a]);
    all.push_back({bytes[a].empty() ? param : bytes[a].data() + element_bytes[a], strides[a], lengths[a]});
  }
  return all;
}

Planes random_planes(const Kernel& kernel, std::int64_t samples, Random& random) {
  Planes planes;
  planes.bytes.resize(kernel.arguments.size());
  for (std::size_t a = 0; a < kernel.arguments.size(); ++a) {
    const Argument& argument = kernel.arguments[a];
    const bool param = argument.role == Role::param;
    const int size = bytes_of(argument.type.scalar);
    const std::int64_t length = length_of(argument, samples, random);
    const std::int64_t stride = (length + 2) * size;
    planes.element_bytes.push_back(size);
    planes.lengths.push_back(length);
    planes.strides.push_back(stride);
    planes.params.push_back(param ? random_bits(argument.type.scalar, random) : 0);
    if (param) continue;
    planes.bytes[a].resize(static_cast<std::size_t>(stride * argument.type.components()));
    fill(argument, planes.bytes[a], random);
  }
  return planes;
}

std::string first_difference(const Kernel& kernel, const Planes& found, const Planes& expected) {
  for (std::size_t a = 0; a < found.bytes.size(); ++a) {
    const Argument& argument = kernel.arguments[a];
    const auto size = static_cast<std::size_t>(bytes_of(argument.type.scalar));
    for (std::size_t at = 0; at < found.bytes[a].size(); at += size) {
      const std::byte* x = found.bytes[a].data() + at;
      const std::byte* y = expected.bytes[a].data() + at;
      const bool both_nan = is_nan(argument.type.scalar, x) && is_nan(argument.type.scalar, y);
      if (std::memcmp(x, y, size) != 0 && !both_nan) return difference(argument, at, x, y);
    }
  }
  return {};
}

}  // namespace eagle::kernel
