// FairQueue: whose piece of work is next, so that each gets its share of the machine's time.
//
// Start-time fair queueing (Goyal, Vin, Cheng 1996) over measured time: every flow has a virtual time, which
// moves by what its pieces took divided by its weight, and the least one is next. A flow that had nothing to
// do starts where the others are: it saves nothing up and owes nothing. Flows of a higher priority go first,
// always. Within a flow it is first come, first served.
#pragma once

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

namespace eagle::server {

// Not thread-safe, and flows are not known here once they have nothing. No clock: whoever runs the pieces
// says how long they took.
template <typename Item>
class FairQueue {
public:
  // One who shares. Outlives its items here.
  class Flow {
  public:
    double weight = 1;  // above 0
    int priority = 0;

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
  // Whether a flow but this one has something.
  [[nodiscard]] bool others_wait(const Flow& flow) const {
    return flows_.size() > 1 || (flows_.size() == 1 && flows_.front() != &flow);
  }

  // The next piece, of the flow that it belongs to; there is one. Say how long it `ran` before the next.
  Item next() {
    Flow& flow = **std::min_element(flows_.begin(), flows_.end(),
                                    [](const Flow* a, const Flow* b) { return before(*a, *b); });
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
  static bool before(const Flow& a, const Flow& b) {
    return a.priority != b.priority ? a.priority > b.priority : a.start_ < b.start_;
  }

  std::vector<Flow*> flows_;  // that have something
  double now_ = 0;            // virtual: where the piece that ran last began
};

}  // namespace eagle::server
