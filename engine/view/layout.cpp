#include "engine/view/layout.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "engine/view/channel.h"
#include "engine/view/item.h"
#include "engine/view/ordering.h"
#include "engine/view/paths.h"
#include "engine/view/routes.h"
#include "engine/view/width.h"

namespace eagle::view {
namespace {

constexpr int lane_pitch = box_gap + 1;  // from one lane to the next

// Lays out one scope: rows and routes first, then all columns from left to right, then all lines of text
// from top to bottom.
class Scope {
public:
  Scope(const std::vector<graph::Stage>& stages, Context& context)
      : context_(context), leaves_(context.leaves.leaves(stages)), ordering_(leaves_, context.work) {
    for (const graph::Stage& stage : stages) place_branches(stage.branches, {0, 0});
    items_.reserve(leaves_.size());
    for (const graph::Leaf& leaf : leaves_) items_.push_back(make_item(*leaf.node, context));
  }

  Layout run() && {
    make_grid();
    std::optional<std::vector<Order>> reduced = ordering_.reduced();
    out_.ordered = reduced.has_value();
    const std::vector<Order> orders = std::move(reduced).value_or(std::vector<Order>{});
    routes_ = route(grid_, orders);
    for (std::size_t leaf = 0; leaf < items_.size(); ++leaf) {
      make_room(items_[leaf], static_cast<int>(routes_.ports[leaf]));
    }
    place_columns();
    place_lanes_beside_columns();
    place_lanes_outside();
    route_channels();
    connect(orders);
    place_rows();
    draw_items();
    for (std::size_t row = 0; row < rows_.size(); ++row) draw_gap(row);
    if (context_.detail == Detail::edges) add_details(orders);
    return std::move(out_);
  }

private:
  struct Column {
    std::uint32_t stage = 0;
    int x = 0;
    int boxes = 0;                     // width of its widest item
    std::vector<std::uint32_t> slots;  // last row of the latest lane in each slot right of the boxes
    [[nodiscard]] int width() const { return boxes + lane_pitch * static_cast<int>(slots.size()); }
  };
  struct StageBlock {
    std::uint32_t first_row = 0;
    std::uint32_t first_column = 0;
    std::uint32_t columns = 0;
    int right = 0;  // one past its last column
  };
  struct Row {
    int y = 0;
    int box_line = 0;
    int height = 0;
    int gap = 0;                   // lines below it
    bool names = false;            // the first of them carries names
    std::vector<ChannelNet> nets;  // as routes_.gaps[row]
  };

  // Rows and columns that branches take, and where in their stage each leaf stands. A group in a branch
  // begins in the branch's own column.
  Grid::Leaf place_branches(std::span<const graph::Branch> branches, Grid::Leaf first) {
    Grid::Leaf size;
    for (const graph::Branch& branch : branches) {
      Grid::Leaf next{first.row, first.column + size.column};
      std::uint32_t columns = 1;
      for (const graph::Node& node : branch.nodes) {
        if (const auto* const group = graph::as<graph::Group>(node)) {
          const Grid::Leaf inner = place_branches(group->branches, next);
          columns = std::max(columns, inner.column);
          next.row += inner.row;
        } else {
          spots_.push_back(next);
          ++next.row;
        }
      }
      size.row = std::max(size.row, next.row - first.row);
      size.column += columns;
    }
    return size;
  }

  void make_grid() {
    for (std::uint32_t leaf = 0; leaf < leaves_.size(); ++leaf) {
      const graph::Leaf& of = leaves_[leaf];
      while (blocks_.size() <= of.stage) {
        blocks_.push_back({static_cast<std::uint32_t>(grid_.rows.size()),
                           static_cast<std::uint32_t>(columns_.size()), 0, 0});
      }
      StageBlock& block = blocks_.back();
      const std::uint32_t column = block.first_column + spots_[leaf].column;
      const std::uint32_t row = block.first_row + spots_[leaf].row;
      while (columns_.size() <= column) {
        columns_.push_back({of.stage, 0, 0, {}});
        grid_.last_row.push_back(row);
        ++block.columns;
      }
      while (grid_.rows.size() <= row) grid_.rows.push_back({of.stage, {}});
      grid_.rows[row].leaves.push_back(leaf);
      grid_.leaves.push_back({row, column});
      grid_.last_row[column] = std::max(grid_.last_row[column], row);
      columns_[column].boxes = std::max(columns_[column].boxes, items_[leaf].width);
    }
    for (const StageBlock& block : blocks_) grid_.impassable.push_back(width_of(block) > widest_centred);
    rows_.resize(grid_.rows.size());
    traces_.resize(grid_.rows.size());
    out_.leaves = static_cast<std::uint32_t>(leaves_.size());
  }

  [[nodiscard]] int width_of(const StageBlock& block) const {
    int width = 0;
    for (std::uint32_t i = 0; i < block.columns; ++i) {
      width += columns_[block.first_column + i].width() + (i == 0 ? 0 : box_gap);
    }
    return width;
  }

  // Boxes and the lanes that run beside them; stages are centred on one axis.
  void place_columns() {
    for (std::size_t leaf = 0; leaf < items_.size(); ++leaf) {
      Column& column = columns_[grid_.leaves[leaf].column];
      column.boxes = std::max(column.boxes, items_[leaf].width);
    }
    lane_slots_.resize(routes_.lanes.size(), 0);
    for (std::size_t lane = 0; lane < routes_.lanes.size(); ++lane) {
      const Lane& of = routes_.lanes[lane];
      if (of.column == outside || of.falls) continue;
      std::vector<std::uint32_t>& slots = columns_[of.column].slots;
      std::size_t slot = 0;
      while (slot < slots.size() && slots[slot] + 1 >= of.first_row) ++slot;
      if (slot == slots.size()) slots.push_back(0);
      slots[slot] = of.last_row;
      lane_slots_[lane] = static_cast<int>(slot);
    }
    int widest = 0;
    for (const StageBlock& block : blocks_) widest = std::max(widest, width_of(block));
    const int axis = std::min(widest, widest_centred) / 2;
    for (StageBlock& block : blocks_) {
      const int width = width_of(block);
      int x = std::max(0, axis - width / 2);
      block.right = x + width;
      for (std::uint32_t i = 0; i < block.columns; ++i) {
        columns_[block.first_column + i].x = x;
        x += columns_[block.first_column + i].width() + box_gap;
      }
      out_.width = std::max(out_.width, block.right);
    }
  }

  [[nodiscard]] int centre_of(std::uint32_t leaf) const {
    const Column& column = columns_[grid_.leaves[leaf].column];
    return column.x + column.boxes / 2;
  }

  void place_lanes_beside_columns() {
    lane_x_.resize(routes_.lanes.size(), 0);
    fixed_.resize(grid_.rows.size());
    for (std::uint32_t leaf = 0; leaf < leaves_.size(); ++leaf)
      fixed_[grid_.leaves[leaf].row].insert(centre_of(leaf));
    for (std::size_t lane = 0; lane < routes_.lanes.size(); ++lane) {
      const Lane& of = routes_.lanes[lane];
      if (of.column == outside) continue;
      const Column& column = columns_[of.column];
      int x = column.x + column.boxes / 2;
      if (!of.falls) {
        x = column.x + column.boxes + box_gap + lane_pitch * lane_slots_[lane];
        // A lane may not start where another line comes down (see channel.h).
        if (of.first_row > 0 && fixed_[of.first_row - 1].contains(x))
          x += fixed_[of.first_row - 1].contains(x + 1) ? -1 : 1;
      }
      lane_x_[lane] = x;
      for (std::uint32_t row = of.first_row; row <= of.last_row; ++row) fixed_[row].insert(x);
    }
  }

  // Right of everything they pass, the short ones inside.
  void place_lanes_outside() {
    std::vector<std::uint32_t> lanes;
    for (std::uint32_t lane = 0; lane < routes_.lanes.size(); ++lane) {
      if (routes_.lanes[lane].column == outside) lanes.push_back(lane);
    }
    const auto length = [&](std::uint32_t lane) {
      return std::pair(routes_.lanes[lane].last_row - routes_.lanes[lane].first_row, lane);
    };
    std::ranges::sort(lanes, {}, length);
    std::vector<std::vector<int>> taken(grid_.rows.size());
    for (const std::uint32_t lane : lanes) {
      const Lane& of = routes_.lanes[lane];
      int x = 0;
      for (std::uint32_t row = of.first_row; row <= of.last_row; ++row) {
        x = std::max(x, blocks_[grid_.rows[row].stage].right + box_gap);
      }
      for (int next = next_free(of, x, taken); next != x; next = next_free(of, x, taken)) x = next;
      lane_x_[lane] = x;
      for (std::uint32_t row = of.first_row; row <= of.last_row; ++row) taken[row].push_back(x);
      out_.width = std::max(out_.width, x + 1);
    }
  }

  // `x` if the lane can stand there, else where to try next. The row above and the one below count as well:
  // lines that meet in a gap need columns of their own.
  [[nodiscard]] int next_free(const Lane& lane, int x, const std::vector<std::vector<int>>& taken) const {
    const std::uint32_t above = lane.first_row - 1;  // a lane never starts in the first row
    const std::uint32_t below = lane.last_row + 1;   // nor does it end in the last
    if (fixed_[above].contains(x) || starts_in(below, x)) return x + 1;
    for (std::uint32_t row = above; row <= below; ++row) {
      for (const int other : taken[row]) {
        if (std::abs(other - x) < lane_pitch) return other + lane_pitch;
      }
    }
    return x;
  }

  // True if a lane beside a column stands at `x` there.
  [[nodiscard]] bool starts_in(std::uint32_t row, int x) const {
    if (!fixed_[row].contains(x)) return false;
    return std::ranges::none_of(grid_.rows[row].leaves,
                                [&](std::uint32_t leaf) { return centre_of(leaf) == x; });
  }

  [[nodiscard]] int x_of(const End& end) const {
    return end.is_lane ? lane_x_[end.index] : centre_of(end.index);
  }

  void route_channels() {
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      std::vector<ChannelNet>& nets = rows_[row].nets;
      for (const Net& net : routes_.gaps[row]) {
        ChannelNet& channel = nets.emplace_back();
        for (const End& top : net.tops) channel.tops.push_back(x_of(top));
        for (const End& bottom : net.bottoms)
          channel.bottoms.push_back({x_of(bottom), x_of(bottom), x_of(bottom)});
      }
      spread_ports(row);
      rows_[row].gap = assign_tracks(nets);
      if (rows_[row].gap > most_tracks) leave_out_tracks(row);
    }
  }

  // Gives each line that enters a box its own column, in the order in which the lines come.
  void spread_ports(std::size_t row) {
    struct Entry {
      std::uint32_t leaf = 0;
      int from = 0;
      ChannelBottom* bottom = nullptr;
    };
    std::vector<Entry> entries;
    for (std::size_t i = 0; i < rows_[row].nets.size(); ++i) {
      ChannelNet& channel = rows_[row].nets[i];
      const std::vector<End>& bottoms = routes_.gaps[row][i].bottoms;
      for (std::size_t b = 0; b < bottoms.size(); ++b) {
        if (!bottoms[b].is_lane)
          entries.push_back({bottoms[b].index, channel.tops.front(), &channel.bottoms[b]});
      }
    }
    std::ranges::sort(entries, [](const Entry& a, const Entry& b) {
      return std::pair(a.leaf, a.from) < std::pair(b.leaf, b.from);
    });
    for (auto first = entries.begin(); first != entries.end();) {
      const std::uint32_t leaf = first->leaf;
      const auto last =
          std::find_if(first, entries.end(), [&](const Entry& entry) { return entry.leaf != leaf; });
      const int count = static_cast<int>(last - first);
      const int inner = items_[leaf].core.width - 2;
      const int pitch = 4 * (count - 1) < inner ? 4 : 2;
      int x = centre_of(leaf) - pitch * (count - 1) / 2;
      for (; first != last; ++first, x += pitch) {
        *first->bottom = {x, centre_of(leaf) - inner / 2, centre_of(leaf) + inner / 2};
      }
    }
  }

  // Nets in tracks past the limit are listed, unless a lane hangs on them.
  void leave_out_tracks(std::size_t row) {
    std::vector<ChannelNet> channels;
    std::vector<Net> nets;
    int tracks = 0;
    for (std::size_t i = 0; i < rows_[row].nets.size(); ++i) {
      ChannelNet& channel = rows_[row].nets[i];
      Net& net = routes_.gaps[row][i];
      const bool in_row =
          std::ranges::none_of(net.tops, &End::is_lane) && std::ranges::none_of(net.bottoms, &End::is_lane);
      if (channel.track >= most_tracks && in_row) {
        for (const End& top : net.tops) {
          for (const End& bottom : net.bottoms) routes_.left_out.push_back({top.index, bottom.index});
        }
        continue;
      }
      tracks = std::max(tracks, channel.track + 1);
      channels.push_back(std::move(channel));
      nets.push_back(std::move(net));
    }
    rows_[row].gap = tracks;
    rows_[row].nets = std::move(channels);
    routes_.gaps[row] = std::move(nets);
  }

  void connect(const std::vector<Order>& orders) {
    std::set<std::pair<std::uint32_t, std::uint32_t>> left_out;
    for (const Order& order : routes_.left_out) left_out.emplace(order.before, order.after);
    std::vector<std::vector<graph::Edge>> carried(leaves_.size());
    for (const Order& order : orders) {
      const bool drawn = !left_out.contains({order.before, order.after});
      std::vector<graph::Edge> hazards = ordering_.hazards(order);
      bound_names(hazards);
      if (drawn) carried[order.before].insert(carried[order.before].end(), hazards.begin(), hazards.end());
      connections_.push_back({order.before, order.after, std::move(hazards), drawn, {}, {}});
    }
    for (const std::vector<graph::Edge>& hazards : carried) names_.push_back(plane_names(hazards));
  }

  // A name of ten thousand bytes at each of a million edges would be ten gigabytes.
  void bound_names(std::vector<graph::Edge>& hazards) {
    for (graph::Edge& hazard : hazards) {
      const auto bytes = static_cast<std::int64_t>(hazard.plane.size());
      if (bytes <= context_.name_bytes_left) {
        context_.name_bytes_left -= bytes;
      } else {
        hazard.plane.clear();
        out_.named = false;
      }
    }
  }

  void place_rows() {
    int y = 0;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      Row& row = rows_[i];
      int below = 0;
      for (const std::uint32_t leaf : grid_.rows[i].leaves) {
        row.box_line = std::max(row.box_line, items_[leaf].box_line);
        below = std::max(below, items_[leaf].height - items_[leaf].box_line);
      }
      row.y = y;
      row.height = row.box_line + below;
      for (const Net& net : routes_.gaps[i]) {
        for (const End& top : net.tops) row.names = row.names || (!top.is_lane && !names_[top.index].empty());
      }
      const bool last = i + 1 == rows_.size();
      row.gap = last ? 0 : std::max(row.gap, 1) + (row.names ? 1 : 0);
      y += row.height + row.gap;
    }
    out_.height = y;
  }

  void draw_items() {
    for (std::uint32_t leaf = 0; leaf < leaves_.size(); ++leaf) {
      const graph::Leaf& of = leaves_[leaf];
      const Row& row = rows_[grid_.leaves[leaf].row];
      const Point at = {centre_of(leaf) - items_[leaf].width / 2,
                        row.y + row.box_line - items_[leaf].box_line};
      cores_.push_back(place(std::move(items_[leaf]), at, of.stage, leaf, out_));
    }
    for (Connection& connection : connections_) {
      connection.source = cores_[connection.source];
      connection.destination = cores_[connection.destination];
      out_.connections.push_back(std::move(connection));
    }
    for (std::uint32_t stage = 0; stage < blocks_.size(); ++stage) {
      const Row& row = rows_[blocks_[stage].first_row];
      out_.stages.push_back({stage, row.y + row.box_line});
    }
  }

  [[nodiscard]] const Shape& core_of(std::uint32_t leaf) const { return out_.shapes[cores_[leaf]]; }

  // Gives the scope's own connections, the last of the picture so far, their paths and bytes.
  void add_details(const std::vector<Order>& orders) {
    const PathFinder paths(grid_, routes_, traces_);
    const std::size_t first = out_.connections.size() - orders.size();
    for (std::size_t i = 0; i < orders.size() && context_.edges_left > 0; ++i, --context_.edges_left) {
      Connection& connection = out_.connections[first + i];
      if (connection.drawn) connection.path = paths.find(orders[i], context_.path_steps_left);
      connection.meetings = graph::meetings_between(context_.graph, leaves_[orders[i].before],
                                                    leaves_[orders[i].after], context_.detail_work);
      bound_names(connection.meetings);
    }
  }

  void bound_names(std::vector<graph::Meeting>& meetings) {
    std::size_t bytes = 0;
    for (const graph::Meeting& meeting : meetings) {
      bytes += meeting.source_plane.size() + meeting.destination_plane.size() + meeting.memory.size();
    }
    context_.name_bytes_left -= static_cast<std::int64_t>(bytes);
    if (context_.name_bytes_left < 0) meetings.clear();
  }

  void draw_gap(std::size_t index) {
    const Row& row = rows_[index];
    const int top = row.y + row.height;
    const int first_track = top + (row.names ? 1 : 0);
    for (std::size_t i = 0; i < row.nets.size(); ++i) {
      draw_net(index, routes_.gaps[index][i], row.nets[i], first_track);
    }
    if (row.names) draw_names(index, top);
  }

  void draw_net(std::size_t index, const Net& net, const ChannelNet& channel, int first_track) {
    const std::uint32_t number = out_.nets++;
    const bool straight = channel.track < 0;
    const int track = first_track + channel.track;
    NetTrace& trace = traces_[index].emplace_back();
    trace.track = track;
    trace.straight = straight;
    int lowest = channel.tops.front();
    int highest = lowest;
    const auto reach = [&](int x) {
      lowest = std::min(lowest, x);
      highest = std::max(highest, x);
    };
    for (std::size_t i = 0; i < net.tops.size(); ++i) {
      const int x = channel.tops[i];
      reach(x);
      const int from = leave(net.tops[i], x, rows_[index]);
      const int to = straight ? enter(net.bottoms.front(), x, rows_[index + 1]) : track;
      out_.wires.push_back({{x, from}, {x, to}, number});
      trace.tops.push_back({x, from});
      if (straight) trace.bottoms.push_back({x, to});
    }
    if (straight) return;
    for (std::size_t i = 0; i < net.bottoms.size(); ++i) {
      const int x = channel.bottoms[i].x;
      reach(x);
      const int to = enter(net.bottoms[i], x, rows_[index + 1]);
      out_.wires.push_back({{x, track}, {x, to}, number});
      trace.bottoms.push_back({x, to});
    }
    out_.wires.push_back({{lowest, track}, {highest, track}, number});
  }

  // The line at which a line starts: a box's lower border, or where a lane has come to. Marks the port.
  int leave(const End& top, int x, const Row& row) {
    if (top.is_lane) return row.y + row.height - 1;
    const Shape& core = core_of(top.index);
    const int y = core.at.y + core.height - 1;
    out_.ports.push_back({{x, y}, false, cores_[top.index]});
    return y;
  }

  int enter(const End& bottom, int x, const Row& row) {
    if (bottom.is_lane) return row.y + row.height - 1;
    const int y = core_of(bottom.index).at.y;
    out_.ports.push_back({{x, y}, true, cores_[bottom.index]});
    return y;
  }

  // Each name runs from its line to a column before the next name or line, the last one to one column past
  // the picture.
  void draw_names(std::size_t index, int y) {
    std::vector<std::pair<int, const std::string*>> things;
    for (const Net& net : routes_.gaps[index]) {
      for (const End& top : net.tops)
        things.emplace_back(x_of(top), top.is_lane ? nullptr : &names_[top.index]);
    }
    std::ranges::sort(things, {}, [](const auto& thing) { return thing.first; });
    for (std::size_t i = 0; i < things.size(); ++i) {
      if (things[i].second == nullptr) continue;
      const int end = i + 1 < things.size() ? things[i + 1].first - 1 : out_.width + 1;
      std::string text = cut(*things[i].second, end - things[i].first);
      if (!text.empty()) out_.names.push_back({{things[i].first, y}, std::move(text)});
    }
  }

  Context& context_;
  std::vector<graph::Leaf> leaves_;
  std::vector<Grid::Leaf> spots_;  // by leaf, within its stage
  Ordering ordering_;
  std::vector<Item> items_;  // by leaf, until they are placed
  Grid grid_;
  Routes routes_;
  std::vector<Column> columns_;
  std::vector<StageBlock> blocks_;  // by stage
  std::vector<int> lane_slots_;
  std::vector<int> lane_x_;
  std::vector<std::set<int>> fixed_;  // by row: columns of boxes' centres and of lanes beside columns
  std::vector<Row> rows_;
  std::vector<std::vector<NetTrace>> traces_;  // by gap and net
  std::vector<std::string> names_;             // by leaf
  std::vector<Connection> connections_;        // between leaves, until these are placed
  std::vector<std::uint32_t> cores_;           // by leaf: its shape
  Layout out_;
};

}  // namespace

std::string plane_names(const std::vector<graph::Edge>& hazards) {
  std::string text;
  std::set<std::string> seen;
  for (const graph::Edge& hazard : hazards) {
    std::string name = escaped(hazard.plane);
    if (hazard.kind != graph::Hazard::raw) name += ":" + std::string(graph::name_of(hazard.kind));
    if (name.empty() || !seen.insert(name).second) continue;
    text += (text.empty() ? "" : ",") + name;
  }
  return text;
}

Layout lay_out(const graph::Graph& graph, Detail detail) {
  Context context{graph::LeafMaker(graph), {most_work}, graph, detail};
  return lay_out(graph.stages, context);
}

Layout lay_out(const std::vector<graph::Stage>& stages, Context& context) {
  return Scope(stages, context).run();
}

}  // namespace eagle::view
