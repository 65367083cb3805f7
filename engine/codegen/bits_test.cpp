// Compiled kernels give the reference interpreter's bits: random kernels and numbers, every target of this
// CPU, lengths around every block, one step and many.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "engine/codegen/compiler.h"
#include "engine/kernel/interpret.h"
#include "engine/kernel/random_kernel.h"
#include "engine/kernel/text.h"

namespace eagle::codegen {
namespace {

using kernel::Kernel;
using kernel::Role;
using kernel::Scalar;

// How many random kernels; EAGLE_RANDOM_KERNELS makes a long run.
int kernels_to_try() {
  const char* asked = std::getenv("EAGLE_RANDOM_KERNELS");
  return asked == nullptr ? 100 : std::atoi(asked);
}

// One launch's planes, as bytes, with a guard of one sample on either side of each component.
struct Planes {
  std::vector<std::vector<std::byte>> bytes;
  std::vector<std::byte*> first;
  std::vector<std::int64_t> strides;
  std::vector<std::uint64_t> params;
};

Planes random_planes(const Kernel& kernel, std::int64_t samples, kernel::Random& random) {
  Planes planes;
  planes.bytes.resize(kernel.arguments.size());
  for (std::size_t a = 0; a < kernel.arguments.size(); ++a) {
    const kernel::Argument& argument = kernel.arguments[a];
    const int size = kernel::bytes_of(argument.type.scalar);
    const std::int64_t stride = (samples + 2) * size;
    planes.params.push_back(argument.role == Role::param ? kernel::random_bits(argument.type.scalar, random) : 0);
    planes.strides.push_back(stride);
    if (argument.role == Role::param) {
      planes.first.push_back(nullptr);
      continue;
    }
    auto& bytes = planes.bytes[a];
    bytes.resize(static_cast<std::size_t>(stride * argument.type.components()));
    for (std::size_t at = 0; at < bytes.size(); at += static_cast<std::size_t>(size)) {
      std::uint64_t bits = kernel::random_bits(argument.type.scalar, random);
      if (argument.role == Role::terminated) bits = random.chance(20) ? 1 : 0;
      std::memcpy(bytes.data() + at, &bits, static_cast<std::size_t>(size));
    }
    planes.first.push_back(bytes.data() + size);
  }
  return planes;
}

void rebase(Planes& copy, const Kernel& kernel) {
  for (std::size_t a = 0; a < copy.first.size(); ++a) {
    if (copy.first[a] != nullptr) copy.first[a] = copy.bytes[a].data() + kernel::bytes_of(kernel.arguments[a].type.scalar);
  }
}

bool is_nan(Scalar scalar, const std::byte* at) {
  if (scalar == Scalar::f64) {
    double value = 0;
    std::memcpy(&value, at, sizeof value);
    return value != value;
  }
  if (scalar == Scalar::f32) {
    float value = 0;
    std::memcpy(&value, at, sizeof value);
    return value != value;
  }
  return false;
}

// NaN equals NaN; everything else by bits.
std::string first_difference(const Kernel& kernel, const Planes& ours, const Planes& expected) {
  for (std::size_t a = 0; a < ours.bytes.size(); ++a) {
    const Scalar scalar = kernel.arguments[a].type.scalar;
    const auto size = static_cast<std::size_t>(kernel::bytes_of(scalar));
    for (std::size_t at = 0; at < ours.bytes[a].size(); at += size) {
      const std::byte* x = ours.bytes[a].data() + at;
      const std::byte* y = expected.bytes[a].data() + at;
      if (std::memcmp(x, y, size) == 0 || (is_nan(scalar, x) && is_nan(scalar, y))) continue;
      std::uint64_t found = 0, wanted = 0;
      std::memcpy(&found, x, size);
      std::memcpy(&wanted, y, size);
      char text[160];
      std::snprintf(text, sizeof text, "argument %s at byte %zu: %016llx, the interpreter has %016llx",
                    kernel.arguments[a].name.c_str(), at, static_cast<unsigned long long>(found),
                    static_cast<unsigned long long>(wanted));
      return text;
    }
  }
  return {};
}

class Bits : public testing::TestWithParam<const char*> {};

TEST_P(Bits, OfRandomKernelsAreTheInterpreters) {
  ::setenv("EAGLED_CPU_TARGET", GetParam(), 1);
  const auto target = default_target();
  ::unsetenv("EAGLED_CPU_TARGET");
  if (!target.ok()) GTEST_SKIP() << target.status().message();

  Compiler compiler;
  for (int i = 0; i < kernels_to_try(); ++i) {
    const std::uint64_t seed = 20'261'129u + static_cast<std::uint64_t>(i);
    const Kernel kernel = kernel::random_kernel(seed);
    const auto compiled = compiler.compile(kernel, *target);
    ASSERT_TRUE(compiled.ok()) << "seed " << seed << ": " << compiled.status().to_string();
    const int lanes = compiled->code->lanes();
    for (const std::int64_t samples : {std::int64_t{0}, std::int64_t{1}, std::int64_t{lanes - 1}, std::int64_t{lanes},
                                       std::int64_t{2 * lanes + 3}}) {
      for (const std::int64_t steps : {1, 3}) {
        kernel::Random random(seed ^ static_cast<std::uint64_t>(samples * 31 + steps));
        Planes ours = random_planes(kernel, samples, random);
        Planes expected = ours;
        rebase(expected, kernel);
        rebase(ours, kernel);

        std::vector<kernel::InterpreterPlane> interpreted;
        for (std::size_t a = 0; a < kernel.arguments.size(); ++a) {
          std::byte* data = expected.first[a];
          if (data == nullptr) data = reinterpret_cast<std::byte*>(&expected.params[a]);
          interpreted.push_back({data, expected.strides[a]});
        }
        const auto wanted = kernel::interpret_launch(kernel, interpreted, samples, steps);

        KernelCall call{.planes = ours.first.data(), .component_strides = ours.strides.data(), .params = ours.params.data(),
                        .begin = 0, .end = samples, .max_steps = steps};
        compiled->code->function()(&call);
        const std::string difference = first_difference(kernel, ours, expected);
        ASSERT_EQ(difference, "") << "seed " << seed << ", " << samples << " samples, " << steps << " steps\n"
                                  << kernel::to_text(kernel);
        ASSERT_EQ(call.finished, wanted.finished) << "seed " << seed << ", " << samples << " samples, " << steps << " steps";
        ASSERT_EQ(call.steps, wanted.steps) << "seed " << seed << ", " << samples << " samples, " << steps << " steps";
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Target, Bits, testing::Values("", "x86-64", "x86-64-v3", "x86-64-v4"),
                         [](const auto& instance) {
                           std::string name = *instance.param == '\0' ? "native" : instance.param;
                           for (char& c : name) {
                             if (c == '-') c = '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace eagle::codegen
