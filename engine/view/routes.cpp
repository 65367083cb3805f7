#include "engine/view/routes.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <unordered_map>
#include <utility>

#include "engine/view/layout.h"

namespace eagle::view {
namespace {

// Sets of leaves still to be reached, as shared lists in row order: equal sets have equal numbers, and the
// set that is left below a row is a tail of the list.
class Targets {
public:
  static constexpr std::uint32_t none = 0;

  std::uint32_t with(std::uint32_t leaf, std::uint32_t rest) {
    const std::uint64_t key = (std::uint64_t{leaf} << 32) | rest;
    const auto [found, added] = numbers_.try_emplace(key, static_cast<std::uint32_t>(nodes_.size()));
    if (added) nodes_.push_back({leaf, rest});
    return found->second;
  }
  [[nodiscard]] std::uint32_t first(std::uint32_t set) const { return nodes_[set].leaf; }
  [[nodiscard]] std::uint32_t rest(std::uint32_t set) const { return nodes_[set].rest; }

private:
  struct Node {
    std::uint32_t leaf = 0;
    std::uint32_t rest = none;
  };
  std::vector<Node> nodes_ = {{}};
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
};

class Router {
public:
  Router(const Grid& grid, std::span<const Order> orders) : grid_(grid) {
    routes_.gaps.resize(grid.rows.size());
    routes_.ports.resize(grid.leaves.size());
    collect_targets(orders);
  }

  Routes run() && {
    for (row_ = 0; row_ + 1 < grid_.rows.size(); ++row_) {
      below_ = row_ + 1;
      inner_ = grid_.rows[row_].stage == grid_.rows[below_].stage;
      group();
      next_.clear();
      beside_ = 0;
      lane_nets_.clear();
      for (Bundle& bundle : bundles_) lead_down(bundle);
      active_ = next_;
    }
    return std::move(routes_);
  }

private:
  struct Bundle {
    std::vector<End> tops;
    std::uint32_t targets = Targets::none;
  };
  struct Active {
    std::uint32_t lane = 0;
    std::uint32_t targets = Targets::none;
  };
  using Key = std::pair<std::uint32_t, std::uint32_t>;

  [[nodiscard]] std::uint32_t row_of(std::uint32_t leaf) const { return grid_.leaves[leaf].row; }
  [[nodiscard]] std::uint32_t stage_of(std::uint32_t leaf) const { return grid_.rows[row_of(leaf)].stage; }
  [[nodiscard]] std::uint32_t column_of(const End& end) const {
    return end.is_lane ? routes_.lanes[end.index].column : grid_.leaves[end.index].column;
  }

  void collect_targets(std::span<const Order> orders) {
    std::vector<std::uint32_t> impassable_before = {0};
    for (const bool impassable : grid_.impassable) {
      impassable_before.push_back(impassable_before.back() + (impassable ? 1 : 0));
    }
    std::vector<std::vector<std::uint32_t>> after(grid_.leaves.size());
    for (const Order& order : orders) {
      const std::uint32_t stage = stage_of(order.before);
      const std::uint32_t last = stage_of(order.after);
      const bool blocked = stage < last && impassable_before[last] > impassable_before[stage + 1];
      if (blocked) {
        routes_.left_out.push_back(order);
      } else {
        after[order.before].push_back(order.after);
      }
    }
    targets_of_.resize(grid_.leaves.size(), Targets::none);
    for (std::size_t leaf = 0; leaf < after.size(); ++leaf) {
      std::ranges::sort(after[leaf], [&](std::uint32_t a, std::uint32_t b) {
        return std::pair(row_of(b), b) < std::pair(row_of(a), a);  // last first
      });
      for (const std::uint32_t target : after[leaf])
        targets_of_[leaf] = targets_.with(target, targets_of_[leaf]);
    }
  }

  // Puts what has the same way to go together. Inside a stage, branches keep to their own columns.
  void group() {
    bundles_.clear();
    std::map<Key, std::size_t> known;
    const auto add = [&](const End& top, std::uint32_t targets) {
      const bool last_step =
          targets_.rest(targets) == Targets::none && row_of(targets_.first(targets)) == below_;
      const std::uint32_t column = inner_ && !last_step ? column_of(top) : outside;
      const auto [found, added] = known.try_emplace({column, targets}, bundles_.size());
      if (added) bundles_.push_back({{}, targets});
      bundles_[found->second].tops.push_back(top);
    };
    // Lanes first: those that are under way keep their room.
    for (const Active& active : active_) add({true, active.lane, 0}, active.targets);
    for (const std::uint32_t leaf : grid_.rows[row_].leaves) {
      if (targets_of_[leaf] != Targets::none) add({false, leaf, 0}, targets_of_[leaf]);
    }
  }

  void lead_down(Bundle& bundle) {
    Net net{std::move(bundle.tops), {}};
    std::uint32_t left = bundle.targets;
    for (; left != Targets::none && row_of(targets_.first(left)) == below_; left = targets_.rest(left)) {
      const std::uint32_t leaf = targets_.first(left);
      net.bottoms.push_back({false, leaf, routes_.ports[leaf]++});
    }
    if (left != Targets::none && !pass_row(net, left)) leave_out(net, left);
    if (!net.bottoms.empty()) routes_.gaps[row_].push_back(std::move(net));
  }

  // Finds `net` a lane past the row below; may hand its tops to another net with the same way to go, and
  // leave it empty. False where there is no room.
  bool pass_row(Net& net, std::uint32_t left) {
    const std::uint32_t column = column_below(net, left);
    const auto own = std::ranges::find_if(
        net.tops, [&](const End& top) { return top.is_lane && column_of(top) == column; });
    if (own != net.tops.end()) {
      routes_.lanes[own->index].last_row = below_;
      continue_in(own->index, column, left, net);
      return true;
    }
    const auto shared = lane_nets_.find({column, left});
    if (net.bottoms.empty() && shared != lane_nets_.end()) {
      std::vector<End>& tops = routes_.gaps[row_][shared->second].tops;
      tops.insert(tops.end(), net.tops.begin(), net.tops.end());
      return true;
    }
    const bool falls = inner_ && column != outside && grid_.last_row[column] < below_;
    const bool starts_here = std::ranges::none_of(net.tops, &End::is_lane);
    if (starts_here && takes_room(falls) && beside_ >= most_lanes) return false;
    const auto lane = static_cast<std::uint32_t>(routes_.lanes.size());
    routes_.lanes.push_back({below_, below_, column, falls});
    continue_in(lane, column, left, net);
    return true;
  }

  void continue_in(std::uint32_t lane, std::uint32_t column, std::uint32_t left, Net& net) {
    // Only a net without other bottoms may be joined: else the joiner would seem to reach those too.
    if (net.bottoms.empty()) lane_nets_.try_emplace({column, left}, routes_.gaps[row_].size());
    net.bottoms.push_back({true, lane, 0});
    next_.push_back({lane, left});
    if (takes_room(routes_.lanes[lane].falls)) ++beside_;
  }

  // Lines below ended branches have their column to themselves; only very wide stages count them.
  [[nodiscard]] bool takes_room(bool falls) const {
    return !falls || grid_.impassable[grid_.rows[below_].stage];
  }

  // Beside the column that holds the next target, beside the branch it comes from, or outside.
  [[nodiscard]] std::uint32_t column_below(const Net& net, std::uint32_t left) const {
    const std::uint32_t target = targets_.first(left);
    if (stage_of(target) == grid_.rows[below_].stage) return grid_.leaves[target].column;
    return inner_ ? column_of(net.tops.front()) : outside;
  }

  void leave_out(const Net& net, std::uint32_t left) {
    for (const End& top : net.tops) {
      for (std::uint32_t set = left; set != Targets::none; set = targets_.rest(set)) {
        routes_.left_out.push_back({top.index, targets_.first(set)});
      }
    }
  }

  const Grid& grid_;
  Routes routes_;
  Targets targets_;
  std::vector<std::uint32_t> targets_of_;  // by leaf
  std::uint32_t row_ = 0;
  std::uint32_t below_ = 0;
  bool inner_ = false;  // both rows are of one stage
  std::vector<Bundle> bundles_;
  std::vector<Active> active_;  // lanes that pass the row
  std::vector<Active> next_;
  std::size_t beside_ = 0;                // those of `next_` that need room beside the boxes
  std::map<Key, std::size_t> lane_nets_;  // nets of this gap that only lead to a lane
};

}  // namespace

Routes route(const Grid& grid, std::span<const Order> orders) { return Router(grid, orders).run(); }

}  // namespace eagle::view
