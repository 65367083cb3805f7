// Bytes of valid kernels, damaged: whatever comes of them is refused with a reason, or is a kernel like any
// other.
#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "eagle/v1/kernel.pb.h"
#include "engine/kernel/names.h"
#include "engine/kernel/random_kernel.h"
#include "engine/kernel/testing_usable.h"
#include "engine/kernel/text.h"
#include "engine/kernel/verify.h"
#include "engine/kernel/wire.h"
#include "proto/testing_mutator.h"

namespace eagle::kernel {
namespace {

using eagle::testing::MessageMutator;

constexpr std::uint64_t seed = 20240229;

std::vector<std::string> serialized_kernels() {
  std::vector<std::string> all;
  RandomKernelOptions options;
  options.ops = 12;  // short, so that a random byte matters
  for (std::uint64_t i = 0; i < 64; ++i) {
    v1::Kernel message;
    to_message(random_kernel(seed + i, options), message);
    all.push_back(message.SerializeAsString());
  }
  return all;
}

void expect_usable(const Kernel& kernel, Random& random) {
  EXPECT_EQ(usable_problem(kernel, random), "") << to_text(kernel);
}

struct Tally {
  int accepted = 0;
  int refused = 0;

  void judge(const v1::Kernel& message, Random& random) {
    const StatusOr<Kernel> kernel = verify(message);
    if (kernel.ok()) {
      ++accepted;
      expect_usable(*kernel, random);
      return;
    }
    ++refused;
    const Reason reason = kernel.status().reason();
    EXPECT_TRUE(reason == Reason::malformed_kernel || reason == Reason::kernel_limit)
        << kernel.status().to_string();
    EXPECT_TRUE(is_utf8(kernel.status().message()));
  }
};

TEST(Hostile, DamagedBytesAreRefusedOrUsable) {
  const google::protobuf::LogSilencer silence;  // it logs names that are not UTF-8
  const std::vector<std::string> kernels = serialized_kernels();
  Tally tally;
  for (std::uint64_t i = 0; i < 20'000 && !HasFailure(); ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed) + " iteration " + std::to_string(i));
    Random random(seed + i);
    MessageMutator mutator(seed + i);
    v1::Kernel message;
    if (message.ParseFromString(mutator.damaged(kernels[random.below(kernels.size())])))
      tally.judge(message, random);
  }
  // Damage that never got past the parser, or never mattered, would test nothing.
  EXPECT_GT(tally.accepted, 500);
  EXPECT_GT(tally.refused, 1'000);
}

TEST(Hostile, AlteredFieldsAreRefusedOrUsable) {
  const std::vector<std::string> kernels = serialized_kernels();
  Tally tally;
  for (std::uint64_t i = 0; i < 20'000 && !HasFailure(); ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed) + " iteration " + std::to_string(i));
    Random random(seed + i);
    MessageMutator mutator(seed + i);
    v1::Kernel message;
    ASSERT_TRUE(message.ParseFromString(kernels[random.below(kernels.size())]));
    for (std::uint64_t edits = 1 + random.below(2); edits > 0; --edits) mutator.change(message);
    tally.judge(message, random);
  }
  EXPECT_GT(tally.accepted, 500);
  EXPECT_GT(tally.refused, 5'000);
}

TEST(Hostile, DamagedTextsAreRefusedOrUsable) {
  std::vector<std::string> texts;
  for (std::uint64_t i = 0; i < 64; ++i) texts.push_back(to_text(random_kernel(seed + i)));
  int accepted = 0;
  for (std::uint64_t i = 0; i < 5'000; ++i) {
    SCOPED_TRACE("seed " + std::to_string(seed) + " iteration " + std::to_string(i));
    Random random(seed + i);
    const std::string text = MessageMutator(seed + i).damaged(texts[random.below(texts.size())]);
    const StatusOr<Kernel> kernel = from_text(text);
    if (kernel.ok()) {
      ++accepted;
      expect_usable(*kernel, random);
    } else {
      EXPECT_TRUE(is_utf8(kernel.status().message())) << text;
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(accepted, 100);
}

}  // namespace
}  // namespace eagle::kernel
