// Fused kernels compute what their parts do one after the other: the interpreter runs both.
#include "engine/kernel/fuse.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "engine/kernel/builder.h"
#include "engine/kernel/interpret.h"
#include "engine/kernel/random_kernel.h"
#include "engine/kernel/random_planes.h"
#include "engine/kernel/text.h"
#include "engine/kernel/wire.h"

namespace eagle::kernel {
namespace {

constexpr std::uint64_t first_seed = 31'000;
constexpr int chains = 400;
constexpr std::int64_t samples = 7;

// y = a x + b
Kernel affine() {
  KernelBuilder k("affine");
  const auto a = k.param("a"), b = k.param("b"), x = k.scalar("x");
  k.output("y", k.add(k.mul(a, x), b));
  return *k.finish();
}

std::vector<Role> roles_of(const Kernel& kernel) {
  std::vector<Role> roles;
  for (const Argument& argument : kernel.arguments) roles.push_back(argument.role);
  return roles;
}

TEST(Fuse, KeepsAValueBetweenTwoKernelsOutOfMemory) {
  const Kernel one = affine();
  const FusePart parts[] = {{&one, {0, 0, 0, 1}}, {&one, {0, 0, 1, 2}}};
  const StatusOr<Fused> fused = fuse(parts, {false, true, false});
  ASSERT_TRUE(fused.ok()) << fused.status().to_string();
  EXPECT_EQ(roles_of(fused->kernel),
            (std::vector{Role::param, Role::param, Role::read, Role::param, Role::param, Role::output}))
      << to_text(fused->kernel);
  EXPECT_EQ(fused->arguments[0], (std::vector<std::uint32_t>{0, 1, 2, Fused::none}));
  EXPECT_EQ(fused->arguments[1], (std::vector<std::uint32_t>{3, 4, Fused::none, 5}));
}

TEST(Fuse, StoresWhatOthersMayLookAt) {
  const Kernel one = affine();
  const FusePart parts[] = {{&one, {0, 0, 0, 1}}, {&one, {0, 0, 1, 2}}};
  const StatusOr<Fused> fused = fuse(parts, {false, false, false});
  ASSERT_TRUE(fused.ok()) << fused.status().to_string();
  const std::vector<Role> roles = roles_of(fused->kernel);
  EXPECT_EQ(std::count(roles.begin(), roles.end(), Role::output), 2) << to_text(fused->kernel);
}

TEST(Fuse, APlaneThatIsReadAndThenWrittenBecomesState) {
  const Kernel one = affine();
  const FusePart parts[] = {{&one, {0, 0, 0, 1}}, {&one, {0, 0, 1, 0}}};  // x -> y -> x
  const StatusOr<Fused> fused = fuse(parts, {false, false});
  ASSERT_TRUE(fused.ok()) << fused.status().to_string();
  EXPECT_EQ(fused->kernel.arguments[2].role, Role::mutable_) << to_text(fused->kernel);
}

TEST(Fuse, EqualChainsShareTheirHash) {
  const Kernel one = affine();
  const FusePart parts[] = {{&one, {0, 0, 0, 1}}, {&one, {0, 0, 1, 2}}};
  const FusePart others[] = {{&one, {0, 0, 2, 0}}, {&one, {0, 0, 0, 1}}};
  const std::vector<bool> none(3, false);
  EXPECT_EQ(content_hash(fuse(parts, none)->kernel), content_hash(fuse(others, none)->kernel));
  EXPECT_NE(content_hash(fuse(parts, none)->kernel), content_hash(fuse(parts, {false, true, false})->kernel));
}

TEST(Fuse, RefusesWhatIsOverTheLimitsOfAKernel) {
  const Kernel one = affine();
  const FusePart parts[] = {{&one, {0, 0, 0, 1}}, {&one, {0, 0, 1, 2}}};
  Limits limits;
  limits.ops = 3;
  const StatusOr<Fused> fused = fuse(parts, {false, false, false}, limits);
  ASSERT_FALSE(fused.ok());
  EXPECT_EQ(fused.status().reason(), Reason::kernel_limit);
}

TEST(CanFuse, NotKernelsWithMasksLoopsOrWhatSamplesMakeTogether) {
  EXPECT_TRUE(can_fuse(affine()));
  {
    KernelBuilder k("masked");
    const auto t = k.state("t", {});
    k.terminated("done");
    k.commit("t", t);
    k.commit("done", k.ge(t, k.real(1)));
    EXPECT_FALSE(can_fuse(*k.finish()));
  }
  {
    KernelBuilder k("loop");
    const auto x = k.scalar("x");
    const auto carried = k.begin_while({x}, 3);
    const auto inside = k.while_condition(k.lt(carried[0], k.real(1)));
    k.output("y", k.end_while({k.add(inside[0], inside[0])})[0]);
    EXPECT_FALSE(can_fuse(*k.finish()));
  }
  {
    KernelBuilder k("reduce");
    const auto x = k.scalar("x");
    k.declare_reduction("total", {}, ReduceOp::sum);
    k.commit("total", x);
    EXPECT_FALSE(can_fuse(*k.finish()));
  }
}

// A plane of a random chain.
struct Place {
  Argument like;  // of the first argument there
  bool written = false;
  bool read_first = false;
  std::vector<std::byte> bytes;
  std::int64_t stride = 0;
  std::int64_t length = 0;
};

// Kernels in a row over a few planes, most of which several of them see.
class Chain {
public:
  explicit Chain(std::uint64_t seed) : random_(seed) {
    RandomKernelOptions options;
    options.ops = 12;
    options.depth = 2;
    options.terminated = 0;
    options.shared = 0;
    const std::size_t wanted = 2 + random_.below(4);
    for (std::uint64_t tries = 0; kernels_.size() < wanted; ++tries) {
      const Kernel kernel = random_kernel(seed * 1000 + tries, options);
      if (can_fuse(kernel) && (kernels_.empty() || kernel.real == kernels_.front().real))
        kernels_.push_back(kernel);
    }
    for (const Kernel& kernel : kernels_) place(kernel);
    for (const Place& one : places_)
      dropped.push_back(one.written && !one.read_first && one.like.role != Role::table && random_.chance(40));
  }

  struct Outcome {
    std::vector<Place> places;
    std::int64_t clamped = 0;
    std::int64_t zero_divisions = 0;
  };

  Outcome one_by_one() {
    Outcome out{places_};
    for (std::size_t k = 0; k < kernels_.size(); ++k) run(kernels_[k], parts_[k].places, params_[k], out);
    return out;
  }

  Outcome at_once(const Fused& fused) {
    Outcome out{places_};
    std::vector<std::uint32_t> places;
    std::vector<std::uint64_t> params;
    for (const Fused::Origin& origin : fused.origins) {
      places.push_back(parts_[origin.part].places[origin.argument]);
      params.push_back(params_[origin.part][origin.argument]);
    }
    run(fused.kernel, places, params, out);
    return out;
  }

  [[nodiscard]] std::span<const FusePart> parts() {
    for (std::size_t k = 0; k < kernels_.size(); ++k) parts_[k].kernel = &kernels_[k];
    return parts_;
  }
  [[nodiscard]] const std::vector<Place>& places() const { return places_; }
  [[nodiscard]] std::string text() const {
    std::string all;
    for (const Kernel& kernel : kernels_) all += to_text(kernel) + "\n";
    return all;
  }
  std::vector<bool> dropped;

private:
  void place(const Kernel& kernel) {
    const std::vector<Access> accesses = kernel::accesses(kernel);
    FusePart part;
    std::vector<std::uint64_t> params;
    for (std::size_t a = 0; a < kernel.arguments.size(); ++a) {
      const Argument& argument = kernel.arguments[a];
      params.push_back(random_bits(argument.type.scalar, random_));
      part.places.push_back(has_plane(argument.role) ? place_of(argument) : 0);
    }
    for (std::size_t a = 0; a < accesses.size(); ++a) {
      if (accesses[a].used && has_plane(kernel.arguments[a].role) && !places_[part.places[a]].written)
        places_[part.places[a]].read_first = true;
    }
    for (std::size_t a = 0; a < accesses.size(); ++a) {
      if (accesses[a].written) places_[part.places[a]].written = true;
    }
    parts_.push_back(std::move(part));
    params_.push_back(std::move(params));
  }

  std::uint32_t place_of(const Argument& argument) {
    const bool table = argument.role == Role::table;
    if (random_.chance(70)) {
      for (std::uint32_t tries = 0; !places_.empty() && tries < 8; ++tries) {
        const auto at = static_cast<std::uint32_t>(random_.below(places_.size()));
        const Argument& there = places_[at].like;
        if (there.type == argument.type && (there.role == Role::table) == table &&
            (!table || there.axes == argument.axes))
          return at;
      }
    }
    Place fresh;
    fresh.like = argument;
    fresh.length = samples;
    if (table) {
      fresh.length = argument.axes.empty() ? static_cast<std::int64_t>(1 + random_.below(9)) : 1;
      for (const Axis& axis : argument.axes) fresh.length *= axis.extent;
    }
    const int size = bytes_of(argument.type.scalar);
    fresh.stride = fresh.length * size;
    fresh.bytes.resize(static_cast<std::size_t>(fresh.stride * argument.type.components()));
    for (std::size_t at = 0; at < fresh.bytes.size(); at += static_cast<std::size_t>(size)) {
      const std::uint64_t bits = random_bits(argument.type.scalar, random_);
      std::memcpy(fresh.bytes.data() + at, &bits, static_cast<std::size_t>(size));
    }
    places_.push_back(std::move(fresh));
    return static_cast<std::uint32_t>(places_.size() - 1);
  }

  static void run(const Kernel& kernel, const std::vector<std::uint32_t>& places,
                  std::vector<std::uint64_t> params, Outcome& out) {
    std::vector<InterpreterPlane> planes;
    for (std::size_t a = 0; a < kernel.arguments.size(); ++a) {
      Place& place = out.places[has_plane(kernel.arguments[a].role) ? places[a] : 0];
      if (has_plane(kernel.arguments[a].role)) {
        planes.push_back({place.bytes.data(), place.stride, place.length});
      } else {
        planes.push_back({reinterpret_cast<std::byte*>(&params[a]), 0, 1});
      }
    }
    const InterpreterResult result = interpret_launch(kernel, planes, samples, 1, {0, samples, 0});
    out.clamped += result.clamped;
    out.zero_divisions += result.zero_divisions;
  }

  Random random_;
  std::vector<Kernel> kernels_;
  std::vector<FusePart> parts_;
  std::vector<std::vector<std::uint64_t>> params_;
  std::vector<Place> places_;
};

TEST(Fuse, RandomChainsGiveTheBitsAndCountsOfTheirParts) {
  int with_dropped = 0, with_clamps = 0;
  for (int i = 0; i < chains; ++i) {
    const std::uint64_t seed = first_seed + static_cast<std::uint64_t>(i);
    SCOPED_TRACE("seed " + std::to_string(seed));
    Chain chain(seed);
    const StatusOr<Fused> fused = fuse(chain.parts(), chain.dropped);
    ASSERT_TRUE(fused.ok()) << fused.status().to_string() << "\n" << chain.text();
    const Chain::Outcome wanted = chain.one_by_one();
    const Chain::Outcome found = chain.at_once(*fused);
    for (std::size_t place = 0; place < wanted.places.size(); ++place) {
      if (chain.dropped[place]) {
        EXPECT_EQ(found.places[place].bytes, chain.places()[place].bytes)
            << "place " << place << " was stored";
      } else {
        ASSERT_EQ(found.places[place].bytes, wanted.places[place].bytes)
            << "place " << place << "\n"
            << chain.text() << to_text(fused->kernel);
      }
    }
    ASSERT_EQ(found.clamped, wanted.clamped) << chain.text();
    ASSERT_EQ(found.zero_divisions, wanted.zero_divisions) << chain.text();
    with_dropped += std::count(chain.dropped.begin(), chain.dropped.end(), true) > 0 ? 1 : 0;
    with_clamps += wanted.clamped > 0 ? 1 : 0;
  }
  EXPECT_GT(with_dropped, chains / 10);
  EXPECT_GT(with_clamps, 10);
}

}  // namespace
}  // namespace eagle::kernel
