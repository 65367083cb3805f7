#include "engine/run/streaming.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/run/testing.h"

namespace eagle::run {
namespace {

// Sets it for as long as it lives.
class Variable {
public:
  Variable(const char* name, const char* value) : name_(name) {
    const char* before = std::getenv(name);
    if (before != nullptr) before_ = before;
    ::setenv(name, value, 1);
  }
  ~Variable() {
    if (before_) {
      ::setenv(name_, before_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }

private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(DefaultStreaming, RefusesWhatItDoesNotKnow) {
  const Variable said("EAGLED_STREAMING", "sideways");
  const auto engine = Engine::create({});
  ASSERT_FALSE(engine.ok());
  EXPECT_EQ(engine.status().reason(), Reason::bad_value);
  EXPECT_NE(engine.status().message().find("sideways"), std::string::npos);
}

TEST(DefaultStreaming, IsWhatTheEnvironmentSays) {
  const Variable said("EAGLED_STREAMING", "always");
  const auto streaming = default_streaming();
  ASSERT_TRUE(streaming.ok());
  EXPECT_EQ(*streaming, Streaming::always);
}

TEST(StreamedFrom, IsNothingEverythingAndWhatIsLarge) {
  EXPECT_EQ(streamed_from(Streaming::always), 0);
  EXPECT_EQ(streamed_from(Streaming::off), std::numeric_limits<std::int64_t>::max());
  EXPECT_GT(streamed_from(Streaming::large), 64 << 10);
  EXPECT_LT(streamed_from(Streaming::large), std::int64_t{1} << 40);
}

// Columns that begin at a multiple of 64 bytes, and so many bytes further; all bytes of them afterwards.
std::vector<double> launched(Streaming streaming, int team, std::int64_t samples, std::size_t further) {
  kernel::KernelBuilder k("many");
  const auto x = k.scalar("x");
  k.output("y", k.mul(x, k.real(3.0)));
  k.output("whole", k.convert(k.mul(x, k.real(1e6)), kernel::Scalar::i64));
  k.output("above", k.ge(x, k.real(0.5)));
  const kernel::Kernel kernel = eagle::testing::finish(k);

  Engine::Options options;
  options.streaming = streaming;
  options.inline_work = 0;
  options.piece_s = eagle::testing::least_pieces;
  const auto engine = eagle::testing::make_engine(team, std::move(options));
  // 64 more bytes than there are samples, in which nothing may change.
  const auto words = static_cast<std::size_t>(samples) + 16;
  std::vector<double> store(4 * words + 8, -7.0);
  void* first = store.data();
  std::size_t room = store.size() * sizeof(double);
  std::align(64, 8, first, room);
  auto* const bytes = static_cast<std::byte*>(first);
  eagle::testing::GraphScene scene;
  const auto array = [&](std::size_t column, v1::DType dtype, std::int64_t item) {
    std::byte* const begin = bytes + column * (words / 8 * 8) * sizeof(double) + further;
    v1::PlaneDeclaration& plane = *scene.message.add_planes();
    plane.mutable_private_memory();
    plane.set_bytes(static_cast<std::uint64_t>(samples * item));
    scene.memory.push_back({begin, static_cast<std::uint64_t>(samples * item)});
    return eagle::testing::Array{static_cast<std::uint32_t>(column), dtype, samples, item};
  };
  const auto in = array(0, v1::DTYPE_F64, 8);
  for (std::int64_t i = 0; i < samples; ++i) {
    const double value = 1.0 / static_cast<double>(i + 1);
    std::memcpy(scene.memory[0].data + i * 8, &value, sizeof value);
  }
  v1::Node& node = eagle::testing::add_node(scene.message, "many");
  eagle::testing::fill(*node.mutable_kernel(), scene.kernel(kernel),
                       {{"x", in},
                        {"y", array(1, v1::DTYPE_F64, 8)},
                        {"whole", array(2, v1::DTYPE_I64, 8)},
                        {"above", array(3, v1::DTYPE_BOOL, 1)}});
  const auto built = eagle::testing::build(*engine, scene);
  if (built) eagle::testing::launch(*built);
  std::vector<double> all(4 * words - 8);
  std::memcpy(all.data(), bytes, all.size() * sizeof(double));
  return all;
}

TEST(Streaming, LeavesTheSameBytesWhereverColumnsBeginAndEnd) {
  for (const std::int64_t samples : {1, 63, 64, 65, 1'000, 4'096 + 17}) {
    for (const std::size_t further : {0, 8, 32}) {
      const std::vector<double> expected = launched(Streaming::off, 1, samples, further);
      for (const int team : {1, 2, 3}) {
        SCOPED_TRACE(std::to_string(samples) + " samples, " + std::to_string(further) +
                     " bytes further, team of " + std::to_string(team));
        const std::vector<double> found = launched(Streaming::always, team, samples, further);
        ASSERT_EQ(std::memcmp(found.data(), expected.data(), expected.size() * sizeof(double)), 0);
      }
    }
  }
}

}  // namespace
}  // namespace eagle::run
