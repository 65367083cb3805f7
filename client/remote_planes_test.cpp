#include "client/remote_planes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "client/plane_registry.h"
#include "engine/plane/stagger.h"

namespace eagle {
namespace {

// Makes planes in this process, and remembers which are still held.
class Source final : public PlaneSource {
public:
  StatusOr<Plane> create_plane(std::uint64_t bytes, std::string_view label,
                               std::string_view device) override {
    if (refuse) return Status(Reason::plane_budget, "the budget is spent");
    if (while_making) std::exchange(while_making, nullptr)();
    EAGLE_ASSIGN_OR_RETURN(auto memory, plane::Memory::create(bytes, label));
    held.insert(++last);
    if (used_before) std::fill_n(memory.data(), bytes, std::byte{7});
    Plane made{{last, 1}, std::move(memory), used_before};
    if (!device.empty()) made.device = {device == "cuda" ? "cuda:0" : std::string(device), "GPU-1", "token"};
    return made;
  }
  Status clear(const Plane& plane, std::uint64_t offset, std::uint64_t bytes) override {
    if (plane.id.id <= lost) return {Reason::unknown_plane, "it was lost with its worker"};
    if (refuse_to_clear) return {Reason::system, "a fault"};
    cleared.emplace_back(plane.id.id, offset, bytes);
    return {};
  }
  [[nodiscard]] std::uint64_t worker() const override { return its_worker; }
  void release_plane(Plane plane) override { EXPECT_EQ(held.erase(plane.id.id), 1u); }

  void renew(const graph::PlaneId& plane, std::uint64_t offset, std::uint64_t bytes) override {
    renewed.emplace_back(plane.id, offset, bytes);
  }

  std::vector<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>> renewed;
  std::set<std::uint64_t> held;
  std::uint64_t last = 0;
  [[nodiscard]] bool forked() const override { return ::getpid() != owner; }

  std::vector<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>> cleared;
  std::uint64_t lost = 0;  // the last plane that went with its worker
  std::uint64_t its_worker = 1;
  bool refuse_to_clear = false;
  bool refuse = false;
  bool used_before = false;            // what it makes holds what an earlier plane left
  std::function<void()> while_making;  // once
  pid_t owner = ::getpid();
};

class RemotePlanesTest : public ::testing::Test {
protected:
  std::shared_ptr<Source> source = std::make_shared<Source>();
  std::shared_ptr<const std::string> session = std::make_shared<const std::string>("session a");
  std::shared_ptr<RemotePlanes> planes = std::make_shared<RemotePlanes>(source, session);

  std::optional<PlaneAddress> find(const Buffer& buffer) const {
    return PlaneRegistry::of_process().find(*session, buffer.data(), buffer.bytes());
  }
};

// Next to it in the first segment nothing of a thousand bytes has room.
constexpr std::uint64_t most_of_a_segment = RemotePlanes::first_segment_bytes - 192;

bool zeroed(const Buffer& buffer) {
  return std::all_of(buffer.data(), buffer.data() + buffer.bytes(),
                     [](std::byte b) { return b == std::byte{}; });
}

// Where a segment takes long to make, whoever lets go of an array does not wait for it.
TEST_F(RemotePlanesTest, ArraysGoWhileASegmentIsMade) {
  auto a = *planes->allocate(most_of_a_segment, "a", Contents::zeros);
  source->while_making = [&] { a.reset(); };
  const auto b = planes->allocate(1000, "b", Contents::zeros);
  ASSERT_TRUE(b.ok()) << b.status().to_string();
  EXPECT_EQ(a, nullptr);
  EXPECT_FALSE(find(**b) == std::nullopt);
}

// As a thread does that forks while another one allocates: the child has no use for what that one holds.
TEST_F(RemotePlanesTest, AChildThatIsForkedWhileASegmentIsMadeLetsGoOfArrays) {
  auto a = *planes->allocate(100, "a", Contents::zeros);
  auto large = *planes->allocate(RemotePlanes::own_plane_from, "large", Contents::zeros);
  const std::set<std::uint64_t> before = source->held;
  pid_t child = -1;
  source->while_making = [&] {
    child = ::fork();
    if (child != 0) return;
    ::alarm(60);
    a.reset();
    large.reset();
    ::_exit(source->held.size() >= before.size() ? 0 : 1);
  };
  const auto b = *planes->allocate(RemotePlanes::first_segment_bytes, "b", Contents::zeros);
  ASSERT_GT(child, 0);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0) << "the child gave back what is its parent's";
}

TEST_F(RemotePlanesTest, SmallArraysShareASegment) {
  const auto a = *planes->allocate(100, "a", Contents::zeros);
  const auto b = *planes->allocate(100, "b", Contents::zeros);
  EXPECT_EQ(source->held.size(), 1u);
  EXPECT_EQ(find(*a)->plane, find(*b)->plane);
  EXPECT_EQ(find(*b)->offset, 128u);
  EXPECT_EQ(find(*b)->plane_bytes, RemotePlanes::first_segment_bytes);
  EXPECT_EQ(find(*b)->label, "b");
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b->data()) % 64, 0u);
}

TEST_F(RemotePlanesTest, ALargeArrayHasAPlaneOfItsOwnAndGivesItBack) {
  const auto small = *planes->allocate(RemotePlanes::own_plane_from - 1, "small", Contents::zeros);
  auto large = *planes->allocate(RemotePlanes::own_plane_from, "large", Contents::zeros);
  EXPECT_EQ(find(*large)->plane_bytes, RemotePlanes::own_plane_from + plane::stagger::page);
  EXPECT_TRUE(find(*large)->alone);
  EXPECT_FALSE(find(*small)->alone);
  EXPECT_EQ(source->held.size(), 2u);
  large.reset();
  EXPECT_EQ(source->held.size(), 1u);
}

// Chains that walk them in step would wait for each other's bytes (engine/plane/stagger.h).
TEST_F(RemotePlanesTest, ArraysBeginAtDifferentPlacesOfTheirPages) {
  for (const std::uint64_t bytes : {std::uint64_t{8192}, RemotePlanes::own_plane_from}) {
    std::vector<std::shared_ptr<Buffer>> arrays;
    std::set<std::uintptr_t> places;
    for (int i = 0; i < 16; ++i) {
      arrays.push_back(*planes->allocate(bytes, "x", Contents::zeros));
      const auto place = reinterpret_cast<std::uintptr_t>(arrays.back()->data()) % plane::stagger::page;
      EXPECT_EQ(place % 64, 0u);
      places.insert(place);
    }
    EXPECT_GT(places.size(), 8u) << bytes;
    for (const auto& array : arrays) {
      std::fill_n(array->data(), bytes, std::byte{1});  // all of it is there
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(array->data()) % 64, 0u);
    }
  }
}

TEST_F(RemotePlanesTest, MemoryThatNobodyHasIsRefusedAndNoSumOfItsSizeWraps) {
  source->refuse = true;
  EXPECT_FALSE(planes->allocate(std::numeric_limits<std::uint64_t>::max() - 7, "x", Contents::zeros).ok());
}

TEST_F(RemotePlanesTest, ARangeIsFreeAfterItsLastOwnerAndComesBackZeroed) {
  auto a = *planes->allocate(64, "a", Contents::zeros);
  std::shared_ptr<Buffer> view = a;
  std::byte* const data = a->data();
  *data = std::byte{7};
  a.reset();
  EXPECT_NE((*planes->allocate(64, "b", Contents::zeros))->data(), data);
  view.reset();
  const auto c = *planes->allocate(64, "c", Contents::zeros);
  EXPECT_EQ(c->data(), data);
  EXPECT_TRUE(zeroed(*c));
}

TEST_F(RemotePlanesTest, MemoryThatIsUsedAgainIsClearedForWhoWantsZerosAlone) {
  source->used_before = true;
  const auto zeros = *planes->allocate(RemotePlanes::own_plane_from, "zeros", Contents::zeros);
  EXPECT_TRUE(zeroed(*zeros));
  const auto any = *planes->allocate(RemotePlanes::own_plane_from, "any", Contents::any);
  EXPECT_EQ(any->data()[0], std::byte{7});
  EXPECT_TRUE(zeroed(**planes->allocate(64, "small", Contents::zeros))) << "a range of a segment, too";
}

TEST_F(RemotePlanesTest, EmptySegmentsGoBackButOne) {
  std::vector<std::shared_ptr<Buffer>> buffers;
  for (int i = 0; i < 40; ++i) buffers.push_back(*planes->allocate(200 << 10, "x", Contents::zeros));
  EXPECT_EQ(source->held.size(), 9u);  // one in a segment of 256 KiB, five in each of 1 MiB
  buffers.clear();
  EXPECT_EQ(source->held.size(), 1u);
}

TEST_F(RemotePlanesTest, AfterClosingOnlyArraysHoldPlanes) {
  auto a = *planes->allocate(64, "a", Contents::zeros);
  auto gone = *planes->allocate(64, "b", Contents::zeros);
  planes->close();
  EXPECT_EQ(source->held.size(), 1u);
  gone.reset();
  EXPECT_EQ(source->held.size(), 1u);
  a.reset();
  EXPECT_EQ(source->held.size(), 0u);
}

TEST_F(RemotePlanesTest, ClosingGivesTheSpareSegmentBack) {
  planes->allocate(64, "a", Contents::zeros)->reset();
  EXPECT_EQ(source->held.size(), 1u);
  planes->close();
  EXPECT_EQ(source->held.size(), 0u);
}

TEST_F(RemotePlanesTest, AnEmptyArrayHasAnAddress) {
  const auto a = *planes->allocate(0, "a", Contents::zeros);
  const auto b = *planes->allocate(0, "b", Contents::zeros);
  EXPECT_NE(a->data(), b->data());
  EXPECT_TRUE(find(*a));
}

TEST_F(RemotePlanesTest, ArraysOutliveTheObjectThatMadeThem) {
  const auto a = *planes->allocate(64, "a", Contents::zeros);
  const auto large = *planes->allocate(RemotePlanes::own_plane_from, "large", Contents::zeros);
  planes.reset();
  *a->data() = std::byte{1};
  *large->data() = std::byte{1};
  EXPECT_TRUE(find(*a));
}

// ---- on a GPU, whose memory is a number here

TEST_F(RemotePlanesTest, SmallArraysOnAGpuShareASegmentAndAreClearedThere) {
  const auto a = *planes->allocate_on("cuda:0", 100, "a", Contents::zeros);
  const auto b = *planes->allocate_on("cuda", 300, "b", Contents::zeros);  // the same GPU by another name
  const auto any = *planes->allocate_on("cuda:0", 1, "any", Contents::any);
  EXPECT_EQ(source->held.size(), 1u);
  EXPECT_EQ(find(*b)->plane, find(*a)->plane);
  EXPECT_EQ(find(*any)->offset % 256, 0u);
  EXPECT_EQ(find(*a)->plane_bytes, RemotePlanes::device_segment_bytes);
  EXPECT_EQ(find(*b)->label, "b");
  EXPECT_FALSE(find(*a)->alone);
  EXPECT_EQ(a->device(), "cuda:0");
  EXPECT_EQ(b->device(), "cuda:0");
  using Cleared = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>;
  EXPECT_THAT(source->cleared, ::testing::ElementsAre(Cleared{1, 0, 256}, Cleared{1, 256, 512}));
  const auto made = source->last;
  const auto c = *planes->allocate_on("cuda", 300, "c", Contents::zeros);  // by now it is known which that is
  EXPECT_EQ(source->last, made);
}

TEST_F(RemotePlanesTest, GpusAndTheHostShareNothing) {
  const auto host = *planes->allocate(100, "host", Contents::zeros);
  const auto first = *planes->allocate_on("cuda:0", 100, "first", Contents::zeros);
  const auto second = *planes->allocate_on("cuda:1", 100, "second", Contents::zeros);
  EXPECT_EQ(source->held.size(), 3u);
  EXPECT_EQ(second->device(), "cuda:1");
  EXPECT_EQ(host->device(), "");
}

TEST_F(RemotePlanesTest, OfAGpuNothingIsKeptForLater) {
  auto a = *planes->allocate_on("cuda:0", 100, "a", Contents::zeros);
  auto large = *planes->allocate_on("cuda:0", RemotePlanes::own_device_plane_from, "large", Contents::zeros);
  EXPECT_EQ(find(*large)->offset, 0u);
  EXPECT_TRUE(find(*large)->alone);
  a.reset();
  EXPECT_EQ(source->held.size(), 1u);
  large.reset();
  EXPECT_EQ(source->held.size(), 0u);
}

TEST_F(RemotePlanesTest, WhatWentWithAWorkerIsNotUsedAgain) {
  auto a = *planes->allocate_on("cuda:0", 100, "a", Contents::zeros);
  source->its_worker = 2;
  source->lost = 1;
  const auto b = *planes->allocate_on("cuda:0", 100, "b", Contents::any);
  EXPECT_NE(find(*a)->plane, find(*b)->plane);
  a.reset();
  EXPECT_EQ(source->held.count(1), 0u);
  EXPECT_EQ(source->held.size(), 1u);
}

// The worker dies in between, or has died and nobody knew.
TEST_F(RemotePlanesTest, ASegmentThatTurnsOutToBeGoneIsReplaced) {
  class Late final : public PlaneSource {
  public:
    explicit Late(Source& source) : source_(source) {}
    StatusOr<Plane> create_plane(std::uint64_t bytes, std::string_view label,
                                 std::string_view device) override {
      return source_.create_plane(bytes, label, device);
    }
    void release_plane(Plane plane) override { source_.release_plane(std::move(plane)); }
    void renew(const graph::PlaneId&, std::uint64_t, std::uint64_t) override {}
    Status clear(const Plane& plane, std::uint64_t offset, std::uint64_t bytes) override {
      const Status done = source_.clear(plane, offset, bytes);
      if (!done.ok()) ++source_.its_worker;  // as is known from that call on
      return done;
    }
    [[nodiscard]] std::uint64_t worker() const override { return source_.its_worker; }

  private:
    Source& source_;
  };
  const auto late = std::make_shared<RemotePlanes>(std::make_shared<Late>(*source), session);
  source->lost = 1;  // the first plane that is made
  const auto b = late->allocate_on("cuda:0", 100, "b", Contents::zeros);
  ASSERT_TRUE(b.ok()) << b.status().to_string();
  EXPECT_EQ(find(**b)->plane.id, 2u);
  EXPECT_EQ(source->held.size(), 1u);
}

TEST_F(RemotePlanesTest, AFaultWhileClearingReachesTheCallerAndKeepsNothing) {
  source->refuse_to_clear = true;
  EXPECT_EQ(planes->allocate_on("cuda:0", 100, "a", Contents::zeros).status().reason(), Reason::system);
  EXPECT_EQ(source->held.size(), 0u);
}

TEST_F(RemotePlanesTest, ARefusalReachesTheCaller) {
  source->refuse = true;
  EXPECT_EQ(planes->allocate(64, "a", Contents::zeros).status().reason(), Reason::plane_budget);
  EXPECT_EQ(planes->allocate(1 << 20, "a", Contents::zeros).status().reason(), Reason::plane_budget);
  source->refuse = false;
  EXPECT_TRUE(planes->allocate(64, "a", Contents::zeros).ok());
}

}  // namespace
}  // namespace eagle
