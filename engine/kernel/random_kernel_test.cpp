#include "engine/kernel/random_kernel.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "engine/kernel/text.h"
#include "engine/kernel/typing.h"
#include "engine/kernel/wire.h"

namespace eagle::kernel {
namespace {

struct Seen {
  std::set<Opcode> opcodes;
  std::set<Scalar> scalars;
  std::set<int> ranks;
  std::set<Role> roles;
  int depth = 0;

  void look(const Region& region, int at) {
    depth = std::max(depth, at);
    for (const Op& op : region.ops) {
      opcodes.insert(op.code);
      for (const Region& nested : op.regions) look(nested, at + 1);
    }
  }
};

TEST(RandomKernel, AFewHundredReachEverything) {
  Seen seen;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Kernel kernel = random_kernel(seed);
    seen.look(kernel.body, 0);
    for (const Argument& argument : kernel.arguments) seen.roles.insert(argument.role);
    for (const Type& type : kernel.value_types) {
      seen.scalars.insert(type.scalar);
      seen.ranks.insert(type.rank);
    }
  }
  EXPECT_EQ(seen.opcodes.size(), rules().size());
  EXPECT_EQ(seen.scalars.size(), 5u);
  EXPECT_EQ(seen.ranks.size(), 3u);
  EXPECT_EQ(seen.roles.size(), 5u);
  EXPECT_EQ(seen.depth, RandomKernelOptions{}.depth);
}

TEST(RandomKernel, IsTheSameForTheSameSeed) {
  EXPECT_EQ(random_kernel(5), random_kernel(5));
  EXPECT_NE(content_hash(random_kernel(5)), content_hash(random_kernel(6)));
}

TEST(RandomKernel, KeepsToItsOptions) {
  RandomKernelOptions options;
  options.depth = 0;
  options.terminated = 100;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Kernel kernel = random_kernel(seed, options);
    EXPECT_EQ(to_text(kernel).find(" if "), std::string::npos);
    EXPECT_GE(kernel.terminated_argument(), 0);
  }
}

}  // namespace
}  // namespace eagle::kernel
