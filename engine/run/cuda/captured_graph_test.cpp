// Work of the process's own packages within graphs, on the GPU of tests/fake_cuda: captured, as a child, and
// on a stream. Each test has a process of its own (ctest).
#include "engine/run/cuda/captured_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <random>
#include <stdexcept>
#include <thread>

#include "engine/run/cuda/testing.h"

namespace eagle::run::cuda {
namespace {

using graph::testing::Description;
using testing::Bytes;
using ::testing::HasSubstr;

class CapturedGraphTest : public testing::DeviceTest {
protected:
  const std::shared_ptr<const Device>& device() { return modules().device(); }
  [[nodiscard]] api::Result fill(api::Stream stream, api::DevicePointer at, unsigned char value,
                                 std::size_t bytes = 1) {
    return device()->driver().call().cuMemsetD8Async(at, value, bytes, stream);
  }
  // A callable that fills a byte.
  auto filling(const DeviceMemory& memory, unsigned char value) {
    return [this, at = memory.address(), value](api::Stream stream) {
      EXPECT_EQ(fill(stream, at, value), api::success);
      return Status();
    };
  }
  DeviceMemory memory(std::uint64_t bytes = 256) {
    auto made = DeviceMemory::create(device(), bytes);
    EXPECT_TRUE(made.ok() && made->fill(0).ok());
    return *std::move(made);
  }
  static int first_byte(const DeviceMemory& memory) {
    std::byte byte{};
    EXPECT_TRUE(memory.read(std::span(&byte, 1)).ok());
    return std::to_integer<int>(byte);
  }
};

// What `play_host` writes, in the order of a stream.
void enqueue_host(const Device& device, const graph::HostNode& host,
                  const std::vector<std::shared_ptr<const DeviceMemory>>& planes, api::Stream stream) {
  const Device::Current current(device);
  for (const graph::NamedView& written : host.writes) {
    int next = static_cast<int>(host.call);
    for (const std::int64_t at : plane::testing::bytes_touched(written.view)) {
      const api::DevicePointer to =
          planes[written.view.plane]->address() + static_cast<api::DevicePointer>(at);
      ASSERT_EQ(
          device.driver().call().cuMemsetD8Async(to, static_cast<unsigned char>(next % 0x3f), 1, stream),
          api::success);
      next += 7;
    }
  }
}

// Each callable is captured, enqueues on a stream, or is called: the bits of the CPU, in any legal order.
TEST_F(CapturedGraphTest, RandomGraphsWithCallablesOfEveryTierGiveTheBitsOfTheCpu) {
  constexpr std::uint64_t first_seed = 700'001;
  const std::uint64_t count = std::getenv("EAGLE_LONG") == nullptr ? 400 : 10'000;
  std::uint64_t ran = 0, captured = 0, streamed = 0, whole = 0;
  auto stream = DeviceStream::create(device());
  ASSERT_TRUE(stream.ok());
  for (std::uint64_t seed = first_seed; ran < count; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    auto [d, planes] = testing::RandomGraph(random);
    const auto built = engine().build(d.message, testing::memory_of(planes));
    if (!built.ok()) continue;  // it races
    const graph::Graph& graph = (*built)->graph();
    std::vector<const graph::HostNode*> hosts;
    testing::find_hosts(graph.stages, hosts);
    if (hosts.empty()) continue;
    ++ran;
    std::vector<std::shared_ptr<const DeviceMemory>> there;
    for (const auto& plane : planes) there.push_back(std::make_shared<DeviceMemory>(memory(plane.size())));
    LoweringOptions options;
    for (const graph::HostNode* host : hosts) {
      const auto tier = host->writes.empty() ? 2 : random() % 3;
      if (tier == 0) {
        auto made = CapturedGraph::capture(device(), [&](api::Stream captures) {
          enqueue_host(*device(), *host, there, captures);
          return Status();
        });
        if (!made.ok()) continue;  // views without bytes: it enqueued nothing
        options.works[host->call].graph = *std::move(made);
        ++captured;
      } else if (tier == 1) {
        options.works[host->call].stream = stream->handle();
        ++streamed;
      }
    }
    const auto made = DeviceGraph::build(modules(), graph, there, options);
    ASSERT_TRUE(made.ok()) << made.status().to_string();
    whole += (*made)->is_whole() ? 1 : 0;
    ASSERT_TRUE(testing::write_all(**made, planes).ok());
    const std::int64_t replays = 1 + static_cast<std::int64_t>(random() % 3);
    ASSERT_TRUE((*made)->launch(replays).ok());
    Bytes found = planes;
    for (bool done = false; !done;) {
      const auto next = (*made)->advance();
      ASSERT_TRUE(next.ok()) << next.status().to_string();
      done = *next == DeviceGraph::Next::done;
      if (done) break;
      const graph::HostNode& host = testing::host_of(graph, (*made)->call());
      const auto work = options.works.find(host.call);
      if (work != options.works.end()) {
        enqueue_host(*device(), host, there, *work->second.stream);
        // Its stream may begin at any time, and not only when somebody waits for what comes behind it.
        const StatusOr<bool> done_already = random() % 2 == 0 ? stream->done() : false;
        ASSERT_TRUE(done_already.ok()) << done_already.status().to_string();
        continue;
      }
      ASSERT_TRUE(testing::read_all(**made, found).ok());
      testing::play_host(host, found);
      ASSERT_TRUE(testing::write_all(**made, found).ok());
    }
    ASSERT_TRUE(testing::read_all(**made, found).ok());
    const testing::Ran on_cpu = testing::run_on_cpu(**built, planes, replays);
    ASSERT_EQ(testing::difference(planes, found), "");
    ASSERT_EQ((*made)->iterations(), on_cpu.iterations);
  }
  EXPECT_GT(captured, ran / 4);
  EXPECT_GT(streamed, ran / 4);
  EXPECT_GT(whole, ran / 20);
}

TEST_F(CapturedGraphTest, WhatWasCapturedIsReplayedAndNotCalled) {
  const DeviceMemory x = memory();
  int calls = 0;
  const auto made = CapturedGraph::capture(device(), [&](api::Stream stream) {
    ++calls;
    return filling(x, 7)(stream);
  });
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  EXPECT_EQ(first_byte(x), 0);
  ASSERT_TRUE((*made)->replay().ok());
  EXPECT_EQ(first_byte(x), 7);
  ASSERT_TRUE(x.fill(0).ok());
  ASSERT_TRUE((*made)->replay().ok());
  EXPECT_EQ(first_byte(x), 7);
  EXPECT_EQ(calls, 1);
}

// Another stream takes part by events, and has to come back.
TEST_F(CapturedGraphTest, ForksAndJoinsOfStreamsArePartOfIt) {
  const DeviceMemory x = memory(), y = memory();
  const auto other = DeviceStream::create(device());
  auto event = DeviceEvent::create(device());
  ASSERT_TRUE(other.ok() && event.ok());
  for (const bool joins : {true, false}) {
    const auto made = CapturedGraph::capture(device(), [&](api::Stream stream) -> Status {
      EXPECT_EQ(fill(stream, x.address(), 1), api::success);
      EAGLE_RETURN_IF_ERROR(event->order(stream, other->handle()));
      EXPECT_EQ(fill(other->handle(), y.address(), 2), api::success);
      EXPECT_EQ(fill(stream, x.address(), 3), api::success);
      return joins ? event->order(other->handle(), stream) : Status();
    });
    EXPECT_EQ(made.ok(), joins);
    if (!joins) {
      EXPECT_EQ(made.status().reason(), Reason::graph_state);
      EXPECT_THAT(made.status().message(), HasSubstr("STREAM_CAPTURE_UNJOINED"));
      continue;
    }
    ASSERT_TRUE((*made)->replay().ok());
    EXPECT_EQ(first_byte(x), 3);
    EXPECT_EQ(first_byte(y), 2);
  }
}

TEST_F(CapturedGraphTest, WhatSpoilsACaptureIsRefusedWithTheWayOutAndTheDeviceIsAsItWas) {
  const DeviceMemory x = memory();
  const auto other = DeviceStream::create(device());
  ASSERT_TRUE(other.ok());
  const std::vector<std::function<Status(api::Stream)>> spoilers = {
      [&](api::Stream) { return DeviceMemory::create(device(), 8).status(); },
      [&](api::Stream) { return x.fill(1); },
      [&](api::Stream stream) {
        return device()->run("cuStreamSynchronize",
                             [&](const api::Functions& call) { return call.cuStreamSynchronize(stream); });
      },
      [&](api::Stream) {
        return device()->run("cuCtxSynchronize",
                             [](const api::Functions& call) { return call.cuCtxSynchronize(); });
      },
      [&](api::Stream stream) {  // work outside of the capture
        auto event = DeviceEvent::create(device());
        return event->order(other->handle(), stream);
      },
  };
  for (const auto& spoil : spoilers) {
    const auto made = CapturedGraph::capture(device(), [&](api::Stream stream) {
      EXPECT_TRUE(filling(x, 1)(stream).ok());
      return spoil(stream);
    });
    EXPECT_EQ(made.status().reason(), Reason::graph_state) << made.status().to_string();
    EXPECT_THAT(made.status().message(), HasSubstr("cannot be captured as part of a CUDA graph"));
    EXPECT_THAT(made.status().message(), HasSubstr("stream=... or eager=True"));
  }
  EXPECT_THAT(CapturedGraph::capture(device(), [](api::Stream) { return Status(); }).status().message(),
              HasSubstr("it enqueued nothing on the stream that is captured"));
  const auto fine = CapturedGraph::capture(device(), filling(x, 9));
  ASSERT_TRUE(fine.ok()) << fine.status().to_string();
  ASSERT_TRUE((*fine)->replay().ok());
  EXPECT_EQ(first_byte(x), 9);
}

TEST_F(CapturedGraphTest, WhatTheCallableSaysOrThrowsItselfComesBackAsItWas) {
  const DeviceMemory x = memory();
  const auto says = [&](api::Stream stream) {
    EXPECT_TRUE(filling(x, 1)(stream).ok());
    return Status(Reason::bad_value, "of its own");
  };
  EXPECT_EQ(CapturedGraph::capture(device(), says).status().message(), "of its own");
  const auto throws = [&](api::Stream) -> Status { throw std::range_error("thrown"); };
  EXPECT_THROW(static_cast<void>(CapturedGraph::capture(device(), throws)), std::range_error);
}

TEST_F(CapturedGraphTest, MemoryThatGoesWhileSomethingIsCapturedIsFreedAfterwards) {
  const DeviceMemory x = memory();
  const auto free_bytes = [&] {
    std::size_t free = 0, total = 0;
    EXPECT_TRUE(device()
                    ->run("cuMemGetInfo",
                          [&](const api::Functions& call) { return call.cuMemGetInfo(&free, &total); })
                    .ok());
    return free;
  };
  auto here = std::make_unique<DeviceMemory>(memory(1000)),
       elsewhere = std::make_unique<DeviceMemory>(memory(1000));
  const std::size_t before = free_bytes();
  const auto made = CapturedGraph::capture(device(), [&](api::Stream stream) {
    here.reset();
    std::thread([&] { elsewhere.reset(); }).join();
    EXPECT_EQ(free_bytes(), before);
    return filling(x, 5)(stream);
  });
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  EXPECT_EQ(free_bytes(), before + 2000);
}

// The last owner of an array, a stream, or a graph may be a collector of garbage, in whichever thread.
TEST_F(CapturedGraphTest, WhatIsFreedWhileAPackageCapturesSpoilsNothing) {
  const DeviceMemory x = memory();
  const auto stream = DeviceStream::create(device());
  ASSERT_TRUE(stream.ok());
  const api::Functions& call = device()->driver().call();
  const Device::Current current(*device());
  for (const int mode : {api::capture_global, api::capture_thread_local, api::capture_relaxed}) {
    auto here = std::make_unique<DeviceMemory>(memory()),
         elsewhere = std::make_unique<DeviceMemory>(memory());
    auto graph = CapturedGraph::capture(device(), filling(x, 1));
    auto idle = DeviceStream::create(device());
    ASSERT_TRUE(graph.ok() && idle.ok());
    ASSERT_EQ(call.cuStreamBeginCapture(stream->handle(), mode), api::success);
    EXPECT_EQ(fill(stream->handle(), x.address(), 2), api::success);
    here.reset();
    std::thread([&] { elsewhere.reset(); }).join();
    *idle = DeviceStream();
    *graph = nullptr;
    api::Graph captured = nullptr;
    EXPECT_EQ(call.cuStreamEndCapture(stream->handle(), &captured), api::success) << "mode " << mode;
    EXPECT_EQ(call.cuGraphDestroy(captured), api::success);
  }
}

TEST_F(CapturedGraphTest, CapturesAndBuildsOfOneDeviceTakeTurns) {
  const DeviceMemory x = memory();
  Description d;
  const plane::View n = d.array({4});
  d.add(graph::testing::reduce("r", n, d.array({1}), v1::REDUCE_SUM));
  const auto graph = d.graph();
  ASSERT_TRUE(DeviceGraph::build(modules(), graph).ok());  // what it loads is loaded
  std::atomic<bool> over = false;
  std::promise<void> begun;
  std::future<bool> other;
  const auto made = CapturedGraph::capture(device(), [&](api::Stream stream) {
    other = std::async(std::launch::async, [&] {
      begun.set_value();
      const auto second = CapturedGraph::capture(device(), filling(x, 2));
      const auto third = DeviceGraph::build(modules(), graph);
      return over && second.ok() && third.ok();
    });
    begun.get_future().wait();
    // Its own turn is not to be had from here.
    EXPECT_THAT(CapturedGraph::capture(device(), filling(x, 3)).status().message(),
                HasSubstr("builds a graph on the same GPU"));
    EXPECT_EQ(DeviceGraph::build(modules(), graph).status().reason(), Reason::graph_state);
    const Status status = filling(x, 1)(stream);
    over = true;
    return status;
  });
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  EXPECT_TRUE(other.get());
}

// Two threads that each wait for the other's GPU would do so for ever.
TEST_F(CapturedGraphTest, NothingIsBuiltOnAnotherGpuFromWithinACapture) {
  EAGLE_PRETEND_OR_SKIP("devices=2");
  const DeviceMemory x = memory();
  const auto driver = Driver::open();
  ASSERT_TRUE(driver.ok());
  const auto second = Device::open(*driver, 1);
  ASSERT_TRUE(second.ok()) << second.status().to_string();
  const auto made = CapturedGraph::capture(device(), [&](api::Stream stream) {
    const Status there = CapturedGraph::capture(*second, filling(x, 3)).status();
    EXPECT_EQ(there.reason(), Reason::graph_state);
    EXPECT_THAT(there.message(), HasSubstr("builds a graph on another GPU"));
    EXPECT_EQ(device()->turns().enter().status().reason(), Reason::graph_state);
    return filling(x, 1)(stream);
  });
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  EXPECT_TRUE((*second)->turns().enter().ok());
}

TEST(CaptureTurns, ACaptureWithinAnotherOneLeavesThatAsItWas) {
  CaptureTurns one, other;
  {
    const CaptureTurns::Capture outer(one);
    { const CaptureTurns::Capture inner(other); }
    EXPECT_EQ(one.enter().status().reason(), Reason::graph_state);
  }
  EXPECT_TRUE(one.enter().ok());
}

TEST_F(CapturedGraphTest, ACopyOutlivesTheOriginalAndKnowsThatItWent) {
  const DeviceMemory x = memory();
  auto original = CapturedGraph::capture(device(), filling(x, 4));
  ASSERT_TRUE(original.ok());
  const auto copy = CapturedGraph::copy_of(device(), (*original)->graph());
  ASSERT_TRUE(copy.ok()) << copy.status().to_string();
  EXPECT_FALSE((*copy)->original_gone());
  original = Status(Reason::bad_value, "gone");
  EXPECT_TRUE((*copy)->original_gone());
  ASSERT_TRUE((*copy)->replay().ok());
  EXPECT_EQ(first_byte(x), 4);
}

}  // namespace
}  // namespace eagle::run::cuda
