#include "client/local_enqueued.h"

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include "engine/graph/edges.h"
#include "engine/run/host.h"

namespace eagle {
namespace {

// Between two looks at a GPU.
constexpr std::chrono::microseconds shortest_pause{20};
constexpr std::chrono::microseconds longest_pause{1'000};

// Those that have not ended. Never destroyed: graphs may go at the very end of the process.
struct UnderWay {
  std::mutex mutex;
  std::vector<std::pair<LocalEnqueued*, std::weak_ptr<LocalEnqueued>>> all;
  std::atomic<std::size_t> count = 0;  // most operations find none

  // With the mutex held; what it gives is let go of without it, which may be the end of some.
  [[nodiscard]] std::vector<std::shared_ptr<LocalEnqueued>> held() const {
    std::vector<std::shared_ptr<LocalEnqueued>> launches;
    for (const auto& [unused, weak] : all) {
      if (auto one = weak.lock()) launches.push_back(std::move(one));
    }
    return launches;
  }
};
UnderWay& under_way() {
  static auto* const launches = new UnderWay;
  return *launches;
}

void forget_launch(const LocalEnqueued* launch) {
  UnderWay& launches = under_way();
  const std::scoped_lock lock(launches.mutex);
  std::erase_if(launches.all, [&](const auto& one) { return one.first == launch; });
  launches.count = launches.all.size();
}

bool in_conflict(const GpuBytes& one, const GpuBytes& other) {
  return (one.written || other.written) && one.first < other.first + other.bytes &&
         other.first < one.first + one.bytes;
}

}  // namespace

GpuTouches touches_of(const graph::Graph& graph,
                      const std::vector<std::shared_ptr<const run::cuda::DeviceMemory>>& planes) {
  std::vector<bool> read(planes.size(), false), written(planes.size(), false);
  for (const graph::Leaf& leaf : graph::leaves(graph)) {
    for (const graph::NamedView& view : leaf.touches.reads) read[view.view.plane] = true;
    for (const graph::NamedView& view : leaf.touches.writes) written[view.view.plane] = true;
  }
  GpuTouches touches;
  for (std::size_t i = 0; i < planes.size(); ++i) {
    if (planes[i] == nullptr || (!read[i] && !written[i])) continue;
    touches.push_back({planes[i]->address(), planes[i]->bytes(), written[i]});
  }
  return touches;
}

GpuTouches touches_of(const std::vector<std::shared_ptr<const run::cuda::DeviceMemory>>& planes) {
  GpuTouches touches;
  for (const auto& plane : planes) {
    if (plane != nullptr) touches.push_back({plane->address(), plane->bytes(), true});
  }
  return touches;
}

LaunchReport report_of(const run::BuiltGraph& graph, const run::Replay& replay,
                       std::chrono::steady_clock::time_point began) {
  LaunchReport report;
  report.host = run::this_host();
  report.launches = replay.launches();
  report.threads = graph.threads();
  report.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  report.iterations = replay.iterations();
  report.counts = replay.counts();
  return report;
}

LocalEnqueued::LocalEnqueued(std::shared_ptr<run::BuiltGraph> graph, std::int64_t count, GpuTouches touches,
                             std::shared_ptr<run::Control> control, std::shared_ptr<const void> session)
    : session_(std::move(session)),
      graph_(std::move(graph)),
      touches_(std::move(touches)),
      control_(std::move(control)) {
  replay_.emplace(*graph_, count, control_);
}

// It is under way from the moment when nothing is that it conflicts with: two threads that begin at once come
// one after the other. Whoever finds it waits for `mutex_` until it has begun.
StatusOr<std::shared_ptr<LocalEnqueued>> LocalEnqueued::begin(std::shared_ptr<run::BuiltGraph> graph,
                                                              std::int64_t count, GpuTouches touches,
                                                              std::shared_ptr<run::Control> control,
                                                              std::shared_ptr<const void> session) {
  const std::shared_ptr<LocalEnqueued> made(
      new LocalEnqueued(std::move(graph), count, std::move(touches), std::move(control), std::move(session)));
  const std::scoped_lock lock(made->mutex_);
  while (!made->enter()) EAGLE_RETURN_IF_ERROR(settle(made->touches_, made->control_.get()));
  const Status begun = made->replay_->begin();
  if (begun.ok()) return made;
  made->end(begun);
  return begun;
}

bool LocalEnqueued::enter() {
  Launches known;  // these go after the lock
  UnderWay& launches = under_way();
  const std::scoped_lock lock(launches.mutex);
  known = launches.held();
  const auto conflicts = [this](const auto& one) { return one->conflicts_with(touches_); };
  if (std::any_of(known.begin(), known.end(), conflicts)) return false;
  launches.all.emplace_back(this, weak_from_this());
  launches.count = launches.all.size();
  return true;
}

void LocalEnqueued::end(StatusOr<LaunchReport> outcome) {
  outcome_.emplace(std::move(outcome));
  replay_.reset();
  forget_launch(this);
}

LocalEnqueued::~LocalEnqueued() {
  stop();
  forget_launch(this);
  replay_.reset();
}

void LocalEnqueued::stop_and_wait() {
  stop();
  drive();
}

// Goes on, unless it would have to wait; whether it has ended.
bool LocalEnqueued::advance() {
  const std::scoped_lock lock(mutex_);
  if (outcome_) return true;
  if (!control_->cancelled() && !control_->expired() && !replay_->ready()) return false;
  const StatusOr<run::Replay::Next> next = replay_->advance();
  if (next.ok() && *next == run::Replay::Next::again) return false;
  if (next.ok() && *next == run::Replay::Next::done) {
    end(report_of(*graph_, *replay_, began_));
  } else {
    end(next.ok() ? Status(Reason::internal, "an enqueued launch calls the host") : next.status());
  }
  return true;
}

void LocalEnqueued::drive() {
  drive([] { return false; });
}

// Until it has ended, or `give_up()` says so; whether it has.
template <typename GiveUp>
bool LocalEnqueued::drive(const GiveUp& give_up) {
  for (auto pause = shortest_pause; !advance(); pause = std::min(2 * pause, longest_pause)) {
    if (give_up()) return false;
    std::this_thread::sleep_for(pause);
  }
  return true;
}

StatusOr<LaunchReport> LocalEnqueued::collect(std::shared_ptr<const std::atomic<bool>> caller,
                                              std::optional<std::chrono::steady_clock::time_point> deadline) {
  {
    const std::scoped_lock lock(mutex_);
    control_->caller = std::move(caller);
    control_->deadline = deadline;
  }
  drive();
  const std::scoped_lock lock(mutex_);
  return *outcome_;
}

bool LocalEnqueued::conflicts_with(const GpuTouches& touches) const {
  return std::any_of(touches.begin(), touches.end(), [&](const GpuBytes& one) {
    return std::any_of(touches_.begin(), touches_.end(),
                       [&](const GpuBytes& other) { return in_conflict(one, other); });
  });
}

template <typename Which>
LocalEnqueued::Launches LocalEnqueued::find(const Which& which) {
  UnderWay& launches = under_way();
  if (launches.count == 0) return {};
  Launches found = [&] {
    const std::scoped_lock lock(launches.mutex);
    return launches.held();
  }();
  std::erase_if(found, [&](const auto& one) { return !which(*one); });
  return found;
}

Status LocalEnqueued::settle(const GpuTouches& touches, const run::Control* control) {
  for (const auto& one : find([&](const LocalEnqueued& launch) { return launch.conflicts_with(touches); })) {
    bool cancelled = false;
    const bool ended = one->drive([&] {
      cancelled = control != nullptr && control->cancelled();
      return cancelled || (control != nullptr && control->expired());
    });
    if (ended) continue;
    return {cancelled ? Reason::cancelled : Reason::deadline,
            std::string(cancelled ? "it was cancelled" : "its deadline passed") +
                " while it waited for a launch that was enqueued over the same arrays; nothing of it ran"};
  }
  return {};
}

void LocalEnqueued::settle_all_of(const void* session) {
  for (const auto& one :
       find([&](const LocalEnqueued& launch) { return launch.session_.get() == session; })) {
    one->drive();
  }
}

}  // namespace eagle
