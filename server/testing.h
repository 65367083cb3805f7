// Descriptions over planes of a session, and a daemon to run them, for tests.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include "engine/run/testing.h"
#include "server/daemon.h"

namespace eagle::server::testing {

// What other threads tell a test, in order. Taking waits, and a test that waits for nothing is ended by its
// watchdog.
template <typename T>
class Mailbox {
public:
  void put(T value) {
    // Notified under the lock: whoever takes the value may destroy the mailbox next.
    const std::lock_guard lock(mutex_);
    values_.push_back(std::move(value));
    filled_.notify_one();
  }
  T take() {
    std::unique_lock lock(mutex_);
    filled_.wait(lock, [this] { return !values_.empty(); });
    T value = std::move(values_.front());
    values_.pop_front();
    return value;
  }
  [[nodiscard]] bool empty() {
    const std::lock_guard lock(mutex_);
    return values_.empty();
  }

private:
  std::mutex mutex_;
  std::condition_variable filled_;
  std::deque<T> values_;
};

inline std::unique_ptr<Daemon> make_daemon(Daemon::Options options = {}) {
  if (options.threads == 0) options.threads = 2;
  auto daemon = Daemon::create(std::move(options));
  EXPECT_TRUE(daemon.ok()) << daemon.status().to_string();
  return daemon.ok() ? *std::move(daemon) : nullptr;
}

inline std::shared_ptr<Session> open_session(Daemon& daemon) {
  auto opened = daemon.sessions().open(Principal{}, "test");
  EXPECT_TRUE(opened.ok()) << opened.status().to_string();
  return opened.ok() ? opened->session : nullptr;
}

// An array that fills a plane of its own.
template <typename T>
struct PlaneArray {
  std::shared_ptr<Plane> plane;
  eagle::testing::Array array;
  std::span<T> values;
};

// A v1::GraphDescription or v1::RunDescription under construction, over planes made in the session.
template <typename Message>
struct Scene : eagle::testing::Scene<Message> {
  explicit Scene(Session& its_session) : session(its_session) {}

  template <typename T>
  PlaneArray<T> plane(std::size_t elements, T value) {
    const PlaneStore::Spec spec{elements * sizeof(T), "p" + std::to_string(this->message.planes_size())};
    auto made = session.planes().create({&spec, 1});
    EXPECT_TRUE(made.ok()) << made.status().to_string();
    PlaneArray<T> result;
    result.plane = made->front().plane;
    result.values = {reinterpret_cast<T*>(result.plane->data()), elements};
    std::fill(result.values.begin(), result.values.end(), value);
    // The view's dtype is worked out there; the plane is then declared as the session's.
    std::vector<T> shape(elements);
    result.array = this->array(shape);
    this->memory.clear();
    v1::PlaneDeclaration& declared = *this->message.mutable_planes(this->message.planes_size() - 1);
    declared.mutable_plane()->set_id(result.plane->id().id);
    declared.mutable_plane()->set_generation(result.plane->id().generation);
    result.array.plane = static_cast<std::uint32_t>(this->message.planes_size()) - 1;
    return result;
  }

  Session& session;
};
using GraphScene = Scene<v1::GraphDescription>;
using RunScene = Scene<v1::RunDescription>;

// x <- x + 1 over all of `x`.
inline void add_increment(GraphScene& scene, const PlaneArray<double>& x) {
  const std::uint32_t kernel = scene.kernel(eagle::testing::affine_in_place());
  eagle::testing::fill(*eagle::testing::add_node(scene.message, "increment").mutable_kernel(), kernel,
                       {{"a", 1.0}, {"b", 1.0}, {"x", x.array}});
}

// A callable `call` of the client, which writes `x`.
inline void add_host_node(GraphScene& scene, std::uint32_t call, const PlaneArray<double>& x) {
  v1::HostNode& host = *eagle::testing::add_node(scene.message, "host").mutable_host();
  host.set_call(call);
  host.set_tier(v1::HOST_TIER_CAPTURED);
  v1::NamedView& view = *host.add_writes();
  view.set_name("x");
  eagle::testing::set_view(*view.mutable_view(), x.array);
}

// The oscillator over `samples` samples, from x = 1 until t_end.
inline RunScene oscillator_run(Session& session, std::size_t samples, double t_end, std::int64_t max_steps) {
  RunScene scene(session);
  const auto x = scene.plane<double>(samples, 1.0);
  const auto v = scene.plane<double>(samples, 0.0);
  const auto t = scene.plane<double>(samples, 0.0);
  const auto omega = scene.plane<double>(samples, 1.0);
  const auto end = scene.plane<double>(samples, t_end);
  const auto done = scene.plane<std::uint8_t>(samples, 0);
  const std::uint32_t kernel = scene.kernel(eagle::testing::oscillator());
  eagle::testing::fill(*scene.message.add_model(), kernel,
                       {{"x", x.array},
                        {"v", v.array},
                        {"t", t.array},
                        {"omega", omega.array},
                        {"dt", 1e-3},
                        {"t_end", end.array},
                        {"done", done.array}});
  scene.message.set_max_steps(max_steps);
  return scene;
}

// x <- x + 1, 10^15 times in one replay.
inline void add_endless(GraphScene& scene, const PlaneArray<std::int64_t>& x) {
  const std::uint32_t kernel = scene.kernel(eagle::testing::counter());
  v1::RepeatWhile& loop = *eagle::testing::add_node(scene.message, "for years").mutable_repeat_while();
  loop.set_max_iterations(1'000'000'000'000'000);
  eagle::testing::set_cell(*loop.mutable_guard()->mutable_count(), "x", x.array, 0);
  v1::Node& body = *loop.add_body()->mutable_node();
  body.set_name("increment");
  eagle::testing::fill(*body.mutable_kernel(), kernel, {{"step", std::int64_t{1}}, {"n", x.array}});
}

// Keeps the executor's thread until `release`.
class Blocker final : public Job {
public:
  static std::shared_ptr<Blocker> hold(Executor& executor) {
    auto blocker = std::make_shared<Blocker>();
    EXPECT_TRUE(executor.submit(blocker).ok());
    blocker->holding_.take();
    return blocker;
  }
  void release() { go_.put(1); }
  Next advance() override {
    holding_.put(1);
    go_.take();
    return Next::done;
  }
  void cancel() override {}

private:
  Mailbox<int> holding_;
  Mailbox<int> go_;
};

inline std::uint64_t build(Daemon& daemon, Session& session, const GraphScene& scene) {
  const auto built = daemon.build(session, scene.message);
  EXPECT_TRUE(built.ok()) << built.status().to_string();
  return built.ok() ? built->graph : 0;
}

}  // namespace eagle::server::testing
