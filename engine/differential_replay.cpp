#include "engine/differential_replay.h"

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <utility>
#include <variant>

#include "engine/base/hex.h"
#include "engine/kernel/names.h"
#include "engine/run/cuda/graph_backend.h"

namespace eagle {
namespace {

bool calls_client(const std::vector<graph::Leaf>& leaves, const graph::Graph& graph, std::string& label) {
  for (const graph::Leaf& leaf : leaves) {
    if (graph::as<graph::HostNode>(*leaf.node) != nullptr) {
      label = leaf.node->label;
      return true;
    }
    const auto* conditional = graph::as<graph::Conditional>(*leaf.node);
    if (conditional != nullptr && calls_client(graph::leaves(graph, conditional->body), graph, label))
      return true;
  }
  return false;
}

// ---- elements

template <typename T>
T loaded(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// Bits as numbers whose difference counts the values in between; both zeros are one.
template <typename Bits, typename Signed>
Signed ordered(Bits bits) {
  constexpr Bits sign = Bits{1} << (8 * sizeof(Bits) - 1);
  return (bits & sign) != 0 ? -static_cast<Signed>(bits & ~sign) : static_cast<Signed>(bits);
}

template <typename Real, typename Bits, typename Signed>
std::optional<std::uint64_t> ulps_between(const std::byte* a, const std::byte* b) {
  if (std::isnan(loaded<Real>(a)) || std::isnan(loaded<Real>(b))) return std::nullopt;
  const Signed one = ordered<Bits, Signed>(loaded<Bits>(a)), other = ordered<Bits, Signed>(loaded<Bits>(b));
  return one < other ? static_cast<std::uint64_t>(other) - static_cast<std::uint64_t>(one)
                     : static_cast<std::uint64_t>(one) - static_cast<std::uint64_t>(other);
}

std::optional<std::uint64_t> ulps_between(const plane::View& view, const std::byte* a, const std::byte* b) {
  if (view.dtype == plane::DType::f64) return ulps_between<double, std::uint64_t, std::int64_t>(a, b);
  if (view.dtype == plane::DType::f32) return ulps_between<float, std::uint32_t, std::int64_t>(a, b);
  return std::nullopt;
}

bool is_nan(const plane::View& view, const std::byte* at) {
  if (view.dtype == plane::DType::f64) return std::isnan(loaded<double>(at));
  return view.dtype == plane::DType::f32 && std::isnan(loaded<float>(at));
}

std::string real_text(double value, int digits) {
  char text[40];
  std::snprintf(text, sizeof text, "%.*g", digits, value);
  return text;
}

std::string text_of(const plane::View& view, const std::byte* at) {
  switch (view.dtype) {
    case plane::DType::f64:
      return real_text(loaded<double>(at), 17);
    case plane::DType::f32:
      return real_text(static_cast<double>(loaded<float>(at)), 9);
    case plane::DType::i64:
      return std::to_string(loaded<std::int64_t>(at));
    case plane::DType::i32:
      return std::to_string(loaded<std::int32_t>(at));
    default:
      return "0x" + to_hex({reinterpret_cast<const std::uint8_t*>(at), view.item_bytes});
  }
}

// The first element of the view that differs. Where both have a NaN, `gpu` is given the CPU's.
std::optional<std::vector<std::int64_t>> first_difference(const plane::View& view, const std::byte* cpu,
                                                          std::byte* gpu) {
  std::optional<std::vector<std::int64_t>> found;
  std::vector<std::int64_t> index(view.shape.size(), 0);
  for (const std::int64_t extent : view.shape) {
    if (extent == 0) return found;
  }
  for (;;) {
    std::int64_t at = view.offset;
    for (std::size_t axis = 0; axis < index.size(); ++axis) at += index[axis] * view.strides[axis];
    if (std::memcmp(cpu + at, gpu + at, view.item_bytes) != 0) {
      if (is_nan(view, cpu + at) && is_nan(view, gpu + at)) {
        std::memcpy(gpu + at, cpu + at, view.item_bytes);
      } else if (!found) {
        found = index;
      }
    }
    std::size_t axis = index.size();
    while (axis > 0 && ++index[axis - 1] == view.shape[axis - 1]) index[--axis] = 0;
    if (axis == 0) return found;
  }
}

std::int64_t offset_of(const plane::View& view, const std::vector<std::int64_t>& index) {
  std::int64_t at = view.offset;
  for (std::size_t axis = 0; axis < index.size(); ++axis) at += index[axis] * view.strides[axis];
  return at;
}

// What leaves write, those of bodies too, in order.
struct Written {
  const graph::Node* node = nullptr;
  graph::NamedView view;
};
void add_written(const graph::Graph& graph, const std::vector<graph::Stage>& stages,
                 std::vector<Written>& all) {
  for (const graph::Leaf& leaf : graph::leaves(graph, stages)) {
    if (const auto* conditional = graph::as<graph::Conditional>(*leaf.node)) {
      add_written(graph, conditional->body, all);
      if (conditional->iterations) all.push_back({leaf.node, *conditional->iterations});
      continue;
    }
    for (const graph::NamedView& written : leaf.touches.writes) all.push_back({leaf.node, written});
  }
}

std::string list_text(const std::vector<std::int64_t>& index) {
  std::string text;
  for (const std::int64_t one : index) text += (text.empty() ? "" : ", ") + std::to_string(one);
  return text;
}

std::string text_of(const run::KernelCounts& counts) {
  return std::to_string(counts.clamped) + " clamped, " + std::to_string(counts.zero_divisions) +
         " divisions by zero, " + std::to_string(counts.dropped) + " dropped";
}

}  // namespace

std::string to_string(const Difference& difference) {
  using What = Difference::What;
  const std::string values = ": " + difference.cpu + " on the CPU, " + difference.gpu + " on the GPU";
  switch (difference.what) {
    case What::element:
      return "node " + kernel::quote_name(difference.node) + ", " + kernel::quote_name(difference.argument) +
             " (plane " + kernel::quote_name(difference.plane) + ")[" + list_text(difference.index) + "]" +
             values +
             (difference.ulps ? ", " + std::to_string(*difference.ulps) +
                                    (*difference.ulps == 1 ? " ULP apart" : " ULPs apart")
                              : std::string());
    case What::byte:
      return "byte " + list_text(difference.index) + " of plane " + kernel::quote_name(difference.plane) +
             ", which no node writes" + values;
    case What::iterations:
      return "bodies that loop " + list_text(difference.index) + " ran" + values;
    case What::counts:
      return "what kernels put right" + values;
  }
  return {};
}

StatusOr<std::unique_ptr<DifferentialReplay>> DifferentialReplay::create(
    Engine& engine, const v1::GraphDescription& description, Asked asked,
    std::span<const run::PlaneMemory> copies, std::shared_ptr<const run::cuda::Devices::Unit> unit,
    const Engine::MakeScratch& scratch, const run::cuda::Account& account, const GivenUp& given_up) {
  std::unique_ptr<DifferentialReplay> made(new DifferentialReplay);
  EAGLE_ASSIGN_OR_RETURN(made->cpu_, engine.build(description, copies, scratch, given_up));
  const graph::Graph& graph = made->cpu_->graph();
  if (std::string label; calls_client(graph::leaves(graph), graph, label)) {
    return Status(Reason::graph_state, "node " + kernel::quote_name(label) +
                                           " is a callable of its program, which nobody else can run; only "
                                           "graphs without callables are run on both");
  }
  made->copies_.assign(copies.begin(), copies.end());
  run::cuda::PlanesOnDevice planes{unit, {}, account};
  for (std::size_t i = 0; i < copies.size(); ++i) {
    if (graph.planes[i].scratch || copies[i].data == nullptr) {
      planes.memory.push_back(nullptr);
      continue;
    }
    EAGLE_ASSIGN_OR_RETURN(auto memory, run::cuda::DeviceMemory::create(unit->device, copies[i].bytes));
    planes.memory.push_back(std::make_shared<const run::cuda::DeviceMemory>(std::move(memory)));
  }
  made->on_device_ = planes.memory;
  EAGLE_ASSIGN_OR_RETURN(made->gpu_, engine.build(description, planes, given_up));
  if (!asked.params.empty()) {
    EAGLE_RETURN_IF_ERROR(made->cpu_->update(asked.params));
    EAGLE_RETURN_IF_ERROR(made->gpu_->update(asked.params));
  }
  made->cpu_replay_.emplace(*made->cpu_, asked.count, asked.control);
  made->gpu_replay_.emplace(*made->gpu_, asked.count, asked.control);
  return made;
}

Status DifferentialReplay::send() const {
  for (std::size_t i = 0; i < copies_.size(); ++i) {
    if (on_device_[i] != nullptr)
      EAGLE_RETURN_IF_ERROR(on_device_[i]->write({copies_[i].data, copies_[i].bytes}));
  }
  return {};
}

StatusOr<bool> DifferentialReplay::advance() {
  if (!std::exchange(sent_, true)) EAGLE_RETURN_IF_ERROR(send());
  run::Replay& replay = cpu_done_ ? *gpu_replay_ : *cpu_replay_;
  EAGLE_ASSIGN_OR_RETURN(const run::Replay::Next next, replay.advance());
  if (next != run::Replay::Next::done) return false;
  return std::exchange(cpu_done_, true);
}

StatusOr<std::optional<Difference>> DifferentialReplay::compare() const {
  EAGLE_ASSIGN_OR_RETURN(std::optional<Difference> found, compare_planes());
  if (found) return found;
  const std::vector<std::int64_t>& cpu = cpu_replay_->iterations();
  const std::vector<std::int64_t>& gpu = gpu_replay_->iterations();
  for (std::size_t loop = 0; loop < cpu.size() && loop < gpu.size(); ++loop) {
    if (cpu[loop] == gpu[loop]) continue;
    found.emplace();
    found->what = Difference::What::iterations;
    found->index = {static_cast<std::int64_t>(loop)};
    found->cpu = std::to_string(cpu[loop]);
    found->gpu = std::to_string(gpu[loop]);
    return found;
  }
  if (const std::string one = text_of(cpu_replay_->counts()), other = text_of(gpu_replay_->counts());
      one != other) {
    found.emplace();
    found->what = Difference::What::counts;
    found->cpu = one;
    found->gpu = other;
  }
  return found;
}

StatusOr<std::optional<Difference>> DifferentialReplay::compare_planes() const {
  const graph::Graph& graph = cpu_->graph();
  std::vector<Written> written;
  add_written(graph, graph.stages, written);
  std::size_t earliest = written.size();
  std::optional<Difference> found;
  for (std::uint32_t p = 0; p < copies_.size(); ++p) {
    if (on_device_[p] == nullptr) continue;
    const std::byte* const cpu = copies_[p].data;
    std::vector<std::byte> gpu(copies_[p].bytes);
    EAGLE_RETURN_IF_ERROR(on_device_[p]->read(gpu));
    const auto differ = [&] { return std::memcmp(cpu, gpu.data(), gpu.size()) != 0; };
    if (!differ()) continue;
    bool in_view = false;
    for (std::size_t i = 0; i < written.size(); ++i) {
      const plane::View& view = written[i].view.view;
      if (view.plane != p) continue;
      const auto index = first_difference(view, cpu, gpu.data());
      if (!index) continue;
      in_view = true;
      if (i >= earliest) continue;
      earliest = i;
      const std::int64_t at = offset_of(view, *index);
      found = Difference{Difference::What::element,
                         graph.planes[p].label,
                         written[i].node->label,
                         written[i].view.name,
                         *index,
                         text_of(view, cpu + at),
                         text_of(view, gpu.data() + at),
                         ulps_between(view, cpu + at, gpu.data() + at)};
    }
    if (in_view || found || !differ()) continue;
    std::size_t at = 0;
    while (cpu[at] == gpu[at]) ++at;
    const auto byte = [](std::byte value) {
      return "0x" + to_hex({reinterpret_cast<const std::uint8_t*>(&value), 1});
    };
    found = Difference{
        Difference::What::byte, graph.planes[p].label, {},          {}, {static_cast<std::int64_t>(at)},
        byte(cpu[at]),          byte(gpu[at]),         std::nullopt};
  }
  return found;
}

}  // namespace eagle
