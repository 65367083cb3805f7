#include "engine/view/channel.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <queue>
#include <set>
#include <unordered_map>
#include <utility>

namespace eagle::view {
namespace {

constexpr std::size_t no_net = static_cast<std::size_t>(-1);

struct Span {
  int lowest = 0;
  int highest = 0;
};

Span span_of(const ChannelNet& net) {
  Span span{net.tops.front(), net.tops.front()};
  const auto include = [&](int x) { span = {std::min(span.lowest, x), std::max(span.highest, x)}; };
  for (const int x : net.tops) include(x);
  for (const ChannelBottom& bottom : net.bottoms) include(bottom.x);
  return span;
}

bool is_straight(const ChannelNet& net) {
  const Span span = span_of(net);
  return span.lowest == span.highest;
}

// Lines that go right are laid from the right, lines that go left from the left: they then nest.
int preference(const ChannelNet& net) {
  const int from = net.tops.front();
  const int to = net.bottoms.front().x;
  return to > from ? -from : from;
}

// Horizontal intervals by track, each with a free column between neighbours.
class Tracks {
public:
  int place(const Span& span, int from) {
    int track = from;
    while (track < static_cast<int>(tracks_.size()) && !is_free(tracks_[track], span)) ++track;
    if (track >= static_cast<int>(tracks_.size())) tracks_.resize(track + 1);
    tracks_[track][span.lowest] = span.highest;
    return track;
  }
  [[nodiscard]] int count() const { return static_cast<int>(tracks_.size()); }

private:
  static bool is_free(const std::map<int, int>& track, const Span& span) {
    const auto next = track.upper_bound(span.highest + 1);
    return next == track.begin() || std::prev(next)->second + 1 < span.lowest;
  }
  std::vector<std::map<int, int>> tracks_;
};

class Channel {
public:
  explicit Channel(std::vector<ChannelNet>& nets)
      : nets_(nets), waits_(nets.size(), 0), least_(nets.size(), 0), placed_(nets.size(), false) {
    for (std::size_t net = 0; net < nets.size(); ++net) {
      for (const int x : nets[net].tops) top_at_[x] = net;
      for (const ChannelBottom& bottom : nets[net].bottoms) bottom_at_[bottom.x] = net;
    }
    for (std::size_t net = 0; net < nets.size(); ++net) {
      for (const ChannelBottom& bottom : nets[net].bottoms)
        waits_[net] += above(net, bottom.x) == no_net ? 0 : 1;
    }
  }

  int run() {
    for (std::size_t net = 0; net < nets_.size(); ++net) {
      if (waits_[net] == 0)
        make_ready(net);
      else
        waiting_.insert(net);
    }
    while (!ready_.empty() || !waiting_.empty()) {
      while (ready_.empty()) break_cycle();
      const std::size_t net = ready_.top().second;
      ready_.pop();
      place(net);
    }
    return tracks_.count();
  }

private:
  // The net that comes down in column `x` and so must lie above `net`'s bottom there.
  [[nodiscard]] std::size_t above(std::size_t net, int x) const {
    const auto found = top_at_.find(x);
    return found == top_at_.end() || found->second == net ? no_net : found->second;
  }

  void make_ready(std::size_t net) { ready_.emplace(-preference(nets_[net]), net); }

  void place(std::size_t net) {
    placed_[net] = true;
    if (!is_straight(nets_[net])) nets_[net].track = tracks_.place(span_of(nets_[net]), least_[net]);
    for (const int x : nets_[net].tops) {
      const auto found = bottom_at_.find(x);
      if (found == bottom_at_.end() || found->second == net) continue;
      least_[found->second] = std::max(least_[found->second], nets_[net].track + 1);
      release(found->second);
    }
  }

  void release(std::size_t net) {
    if (--waits_[net] > 0) return;
    waiting_.erase(net);
    make_ready(net);
  }

  // Every net left waits for another: moving one bottom aside lets its net go.
  void break_cycle() {
    for (const std::size_t net : waiting_) {
      for (ChannelBottom& bottom : nets_[net].bottoms) {
        const std::size_t other = above(net, bottom.x);
        if (other == no_net || placed_[other] || !move_aside(net, bottom)) continue;
        release(net);
        return;
      }
    }
    // Not reached while the preconditions hold: whoever is left may cross, but nothing hangs.
    const std::size_t net = *waiting_.begin();
    waits_[net] = 1;
    release(net);
  }

  // To the nearest free column, if there is one with free neighbours to one of these.
  bool move_aside(std::size_t net, ChannelBottom& bottom) {
    for (const bool roomy : {true, false}) {
      for (int step = 1; step <= bottom.highest - bottom.lowest; ++step) {
        for (const int x : {bottom.x - step, bottom.x + step}) {
          if (x < bottom.lowest || x > bottom.highest || is_taken(x)) continue;
          if (roomy && (is_taken(x - 1) || is_taken(x + 1))) continue;
          bottom_at_.erase(bottom.x);
          bottom_at_[x] = net;
          bottom.x = x;
          return true;
        }
      }
    }
    return false;
  }
  [[nodiscard]] bool is_taken(int x) const { return top_at_.contains(x) || bottom_at_.contains(x); }

  std::vector<ChannelNet>& nets_;
  std::unordered_map<int, std::size_t> top_at_;
  std::unordered_map<int, std::size_t> bottom_at_;
  std::vector<int> waits_;  // bottoms below another net that is not placed yet
  std::vector<int> least_;  // the first track a net may take
  std::set<std::size_t> waiting_;
  std::vector<bool> placed_;
  std::priority_queue<std::pair<int, std::size_t>> ready_;
  Tracks tracks_;
};

}  // namespace

int assign_tracks(std::vector<ChannelNet>& nets) { return Channel(nets).run(); }

}  // namespace eagle::view
