// FairQueue: whose piece of work is next, so that each gets its share of the machine's time.
//
// Start-time fair queueing (Goyal, Vin, Cheng 1996) over measured time: every flow has a virtual time, which
// moves by what its pieces took divided by its weight, and the least one is next. A flow that had nothing to
// do saves nothing up: it starts where the others are. What it owes it keeps owing: where its last piece took
// more than its share, it starts later than they do, until they have had as much. (Else a flow would shed a
// long piece by having nothing to do for a moment.) Flows of a higher priority go first, always, and one that
// is to be behind until some time goes last until then, whatever its priority. Within a
// flow it is first come, first served.
#pragma once

#include <algorithm>
#include <chrono>
#include <deque>
#include <utility>
#include <vector>

namespace eagle::server {

// Not thread-safe, and flows are not known here once they have nothing. No clock: whoever runs the pieces
// says how long they took, and what time it is.
template <typename Item>
class FairQueue {
public:
  using Time = std::chrono::steady_clock::time_point;
  // One who shares. Outlives its items here.
  class Flow {
  public:
    double weight = 1;  // above 0
    int priority = 0;
    Time behind_until = Time::min();

  private:
    friend FairQueue;
    std::deque<Item> waiting_;
    double start_ = 0;  // virtual time of its next piece
    bool running_ = false;
  };

  void add(Flow& flow, Item item) {
    if (flow.waiting_.empty()) {
      flows_.push_back(&flow);
      if (!flow.running_) flow.start_ = std::max(flow.start_, now_);
    }
    flow.waiting_.push_back(std::move(item));
  }
  // Whether it was there.
  bool remove(Flow& flow, const Item& item) {
    const auto found = std::find(flow.waiting_.begin(), flow.waiting_.end(), item);
    if (found == flow.waiting_.end()) return false;
    flow.waiting_.erase(found);
    if (flow.waiting_.empty()) std::erase(flows_, &flow);
    return true;
  }
  [[nodiscard]] bool empty() const { return flows_.empty(); }
  // Drops all items. A flow may go with its last one.
  void clear() {
    for (Flow* const flow : std::exchange(flows_, {})) std::exchange(flow->waiting_, {}).clear();
  }
  // Whether a flow but this one has something.
  [[nodiscard]] bool others_wait(const Flow& flow) const {
    return flows_.size() > 1 || (flows_.size() == 1 && flows_.front() != &flow);
  }

  // A piece of this flow is next, without having waited: nothing does. Say how long it `ran`, likewise.
  void begin(Flow& flow) {
    if (!flow.running_) flow.start_ = std::max(flow.start_, now_);
    now_ = std::max(now_, flow.start_);
    flow.running_ = true;
  }
  // The next piece, of the flow that it belongs to; there is one. Say how long it `ran` before the next.
  Item next(Time now = Time::min()) {
    Flow& flow = **std::min_element(flows_.begin(), flows_.end(),
                                    [now](const Flow* a, const Flow* b) { return before(*a, *b, now); });
    now_ = std::max(now_, flow.start_);
    flow.running_ = true;
    Item item = std::move(flow.waiting_.front());
    flow.waiting_.pop_front();
    if (flow.waiting_.empty()) std::erase(flows_, &flow);
    return item;
  }
  // The piece of this flow took so many seconds. Before what is left of it is added again.
  void ran(Flow& flow, double seconds) {
    flow.running_ = false;
    flow.start_ += seconds / flow.weight;
  }

private:
  static bool before(const Flow& a, const Flow& b, Time now) {
    const bool a_behind = now < a.behind_until;
    if (const bool b_behind = now < b.behind_until; a_behind != b_behind) return b_behind;
    return a.priority != b.priority ? a.priority > b.priority : a.start_ < b.start_;
  }

  std::vector<Flow*> flows_;  // that have something
  double now_ = 0;            // virtual: where the piece that ran last began
};

}  // namespace eagle::server
