#include "eagle/client/reverse.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "client/graph_state.h"
#include "client/recording.h"
#include "eagle/v1/graph.pb.h"
#include "engine/diff/emit.h"
#include "engine/graph/param.h"
#include "engine/kernel/names.h"
#include "engine/plane/copy_view.h"

namespace eagle {
namespace {

using plane::View;

std::shared_ptr<const void> owner_of(const Recording::Bytes& bytes) { return bytes; }

ArrayView array_of(const View& view, std::byte* memory, std::shared_ptr<const void> owner) {
  return {memory + view.offset, view.dtype, view.item_bytes, view.shape,
          view.strides,         false,      std::move(owner)};
}

// A packed copy, as an array shaped as the one that it is of.
ArrayView array_of(const Recording::Bytes& bytes, const ArrayView& like) {
  const View view = diff::packed(view_of_array(like));
  auto* const memory = const_cast<std::byte*>(bytes->data());
  ArrayView array = array_of(view, memory, owner_of(bytes));
  array.read_only = true;
  return array;
}

// So that a pass is good for launches of somewhat different numbers of trips, too.
std::int64_t room_for(std::int64_t trips) {
  std::int64_t room = 1;
  while (room < trips && room < (std::int64_t{1} << 62)) room *= 2;
  return room;
}

graph::Number number_of(kernel::Scalar scalar, std::uint64_t bits) {
  if (scalar == kernel::Scalar::f64) return std::bit_cast<double>(bits);
  if (scalar == kernel::Scalar::f32)
    return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  return static_cast<std::int64_t>(bits);
}

std::string expected(const Reverse::Plane& plane) {
  std::string shape;
  for (const std::int64_t extent : plane.shape) shape += (shape.empty() ? "" : ", ") + std::to_string(extent);
  if (plane.shape.size() == 1) shape += ",";
  return std::string(plane::name_of(plane.dtype)) + " (" + shape + ")";
}

Status check_like(std::string_view what, const Reverse::Plane& plane, const ArrayView& array) {
  if (array.dtype != plane.dtype || array.shape != plane.shape) {
    const Reverse::Plane found{"", array.dtype, array.shape};
    return {array.dtype != plane.dtype ? Reason::wrong_dtype : Reason::wrong_shape,
            "reverse: " + std::string(what) + " " + kernel::quote_name(plane.name) + ": expected " +
                expected(plane) + ", as the plane is, found " + expected(found)};
  }
  return {};
}

}  // namespace

struct Reverse::State {
  State(std::shared_ptr<Recording> its_recording, Graph its_graph)
      : recording(std::move(its_recording)), graph(std::move(its_graph)) {}

  std::shared_ptr<Recording> recording;
  Graph graph;
  diff::Reverse plan;
  std::shared_ptr<Buffer> arena;
  std::vector<std::int64_t> room;  // trips that each of the forward graph's outermost loops may take; 0: any
  std::uint64_t params_changed = 0;
  std::vector<Plane> seeds;
  std::vector<Plane> gradients;

  [[nodiscard]] ArrayView in_arena(const View& view) const { return array_of(view, arena->data(), arena); }

  // Any of the arena's bytes as one array.
  [[nodiscard]] ArrayView whole_arena() const {
    const auto bytes = static_cast<std::int64_t>(arena->bytes());
    return {arena->data(), DType::boolean, 1, {bytes}, {1}, false, arena};
  }
  Status update_params();
  Status write_constants() const;
};

namespace {

std::vector<Reverse::Plane> planes_of(const std::vector<diff::ArenaArray>& arrays) {
  std::vector<Reverse::Plane> planes;
  for (const diff::ArenaArray& array : arrays)
    planes.push_back({array.name, array.view.dtype, array.view.shape});
  return planes;
}

// Writes what the forward node's call wrote.
Status write_again(const Recording& recording, const diff::ReverseCall& call, const Buffer& arena) {
  auto* const cursor = arena.data() + call.cursor.offset;
  std::int64_t number = 0;
  std::memcpy(&number, cursor, sizeof number);
  const Recording::Callable& callable = recording.callables[call.host];
  if (number < 0 || static_cast<std::size_t>(number) >= callable.calls.size()) {
    return {Reason::internal, "reverse: call " + std::to_string(number) + " of " +
                                  kernel::quote_name(call.label) + " is not in the record"};
  }
  const Recording::Call& recorded = callable.calls[static_cast<std::size_t>(number)];
  for (std::size_t i = 0; i < recorded.writes.size(); ++i) {
    const View from = diff::packed(view_of_array(callable.writes[i].second));
    plane::copy_view(from, recorded.writes[i]->data(), call.writes[i], arena.data());
  }
  ++number;
  std::memcpy(cursor, &number, sizeof number);
  return {};
}

Status take_back(const Recording& recording, const diff::ReverseCall& call,
                 const std::shared_ptr<Buffer>& arena, const Vjp& vjp) {
  std::int64_t number = 0;
  std::memcpy(&number, arena->data() + call.cursor.offset, sizeof number);
  const Recording::Callable& callable = recording.callables[call.host];
  if (number < 0 || static_cast<std::size_t>(number) >= callable.calls.size()) {
    return {Reason::internal, "reverse: call " + std::to_string(number) + " of " +
                                  kernel::quote_name(call.label) + " is not in the record"};
  }
  const Recording::Call& recorded = callable.calls[static_cast<std::size_t>(number)];
  VjpArguments arguments;
  for (std::size_t i = 0; i < callable.reads.size(); ++i) {
    const auto& [name, array] = callable.reads[i];
    arguments.primals.emplace_back(name, recorded.reads[i] ? array_of(recorded.reads[i], array) : array);
    if (!call.gradients[i]) continue;
    ArrayView gradient = array_of(*call.gradients[i], arena->data(), arena);
    std::memset(gradient.data, 0,
                static_cast<std::size_t>(plane::elements(*call.gradients[i])) * gradient.item_bytes);
    arguments.gradients.emplace_back(name, std::move(gradient));
  }
  for (std::size_t i = 0; i < callable.writes.size(); ++i) {
    if (!call.cotangents[i]) continue;
    arguments.cotangents.emplace_back(callable.writes[i].first,
                                      array_of(*call.cotangents[i], arena->data(), arena));
  }
  return vjp(arguments);
}

// By host node: its derivative, or null. A label that several nodes share does not say whose derivative it
// is: it needs one for each of them.
StatusOr<std::vector<const Vjp*>> vjps_of(const Recording& recording, const ReverseOptions& options) {
  std::map<std::string_view, std::vector<std::size_t>> hosts;
  for (std::size_t host = 0; host < recording.callables.size(); ++host)
    hosts[recording.callables[host].label].push_back(host);
  std::map<std::string_view, std::vector<const Vjp*>> given;
  for (const auto& [label, vjp] : options.vjps) given[label].push_back(&vjp);
  std::vector<const Vjp*> found(recording.callables.size(), nullptr);
  for (const auto& [label, vjps] : given) {
    const auto named = hosts.find(label);
    if (named == hosts.end()) continue;
    if (named->second.size() != vjps.size()) {
      return Status(
          Reason::bad_binding,
          "reverse: vjps: " + std::to_string(named->second.size()) + " callables are called " +
              kernel::quote_name(label) + ", and " + std::to_string(vjps.size()) +
              " of their derivatives is given; give the nodes names of their own, and each its vjp");
    }
    for (std::size_t i = 0; i < vjps.size(); ++i) found[named->second[i]] = vjps[i];
  }
  return found;
}

}  // namespace

Status Reverse::State::write_constants() const {
  for (const diff::ArenaConstant& constant : plan.constants) {
    const auto n = static_cast<std::int64_t>(constant.values.size());
    const ArrayView array = in_arena(diff::row(0, constant.offset, DType::i64, n));
    std::memcpy(array.data, constant.values.data(), constant.values.size() * sizeof(std::int64_t));
    EAGLE_RETURN_IF_ERROR(recording->session.send(array));
  }
  return {};
}

// Numbers with which Params of the forward graph were launched.
Status Reverse::State::update_params() {
  if (params_changed == recording->launched_params_changed()) return {};
  std::vector<ParamUpdate> updates;
  const auto flush = [&]() -> Status {
    if (updates.empty()) return {};
    EAGLE_RETURN_IF_ERROR(graph.update(updates));
    updates.clear();
    return {};
  };
  for (const diff::ParamLink& link : plan.params) {
    const auto found = recording->launched_params().find({link.from.launch, link.from.argument});
    if (found == recording->launched_params().end()) continue;
    updates.push_back({{link.node, {}, link.argument}, number_of(link.scalar, found->second)});
    if (updates.size() == graph::most_updates) EAGLE_RETURN_IF_ERROR(flush());
  }
  EAGLE_RETURN_IF_ERROR(flush());
  params_changed = recording->launched_params_changed();
  return {};
}

Reverse::Reverse(std::unique_ptr<State> state) : state_(std::move(state)) {}
Reverse::Reverse(Reverse&&) noexcept = default;
Reverse& Reverse::operator=(Reverse&&) noexcept = default;
Reverse::~Reverse() = default;

StatusOr<Reverse> reverse(const Record& record, const std::vector<std::string>& seeds,
                          const ReverseOptions& options) {
  const std::shared_ptr<Recording>& recording = record.recording();
  if (seeds.empty()) {
    return Status(Reason::bad_value,
                  "reverse: there is no seed; give the derivative of what you are after by one "
                  "of the planes that the graph writes, seeds={\"y\": dJ_dy}");
  }
  if (options.checkpoint < 0) {
    return Status(Reason::bad_value, "reverse: checkpoint is " + std::to_string(options.checkpoint) +
                                         "; give a number of trips, at least 1");
  }
  diff::ReverseOptions wanted;
  wanted.seeds = seeds;
  wanted.wrt = options.wrt;
  wanted.checkpoint = options.checkpoint;
  EAGLE_ASSIGN_OR_RETURN(const std::vector<const Vjp*> vjps, vjps_of(*recording, options));
  for (const auto& [label, vjp] : options.vjps) wanted.vjps.push_back(label);
  // Loops of the graph itself are planned for about as many trips as they took, others for their caps.
  wanted.trips.resize(recording->program->loops());
  for (const diff::Step& step : recording->program->steps()) {
    if (step.is_loop() && step.loop < recording->trips().size())
      wanted.trips[step.loop] = room_for(recording->trips()[step.loop]);
  }
  StatusOr<diff::Reverse> planned =
      diff::plan_reverse(*recording->program, *recording->description, recording->plan, wanted);
  if (!planned.ok()) return planned.status().within("reverse");

  const Session& session = recording->session;
  v1::GraphDescription& description = *planned->description;
  Backing backing;
  backing.private_planes = recording->private_planes;
  backing.keep_alive = recording->keep_alive;
  StatusOr<std::shared_ptr<Buffer>> arena = session.allocate(static_cast<std::uint64_t>(planned->arena_bytes),
                                                             "reverse", Contents::zeros, recording->device);
  if (!arena.ok()) return arena.status().within("reverse");
  if (planned->record) {
    EAGLE_RETURN_IF_ERROR(place(*session.host(), *recording->memory, *planned->record, description, backing));
  }
  EAGLE_RETURN_IF_ERROR(place(*session.host(), **arena, planned->arena, description, backing));
  for (const diff::ReverseCall& call : planned->calls) {
    if (call.kind == diff::ReverseCall::Kind::again) {
      backing.calls.emplace_back(
          [recording, call, memory = *arena] { return write_again(*recording, call, *memory); });
      continue;
    }
    backing.calls.emplace_back([recording, call, memory = *arena, function = *vjps[call.host]] {
      return take_back(*recording, call, memory, function);
    });
  }
  StatusOr<Graph> graph = Graph::of_description(session, description, std::move(backing));
  if (!graph.ok()) return graph.status().within("reverse");

  auto state = std::make_unique<Reverse::State>(recording, *std::move(graph));
  state->plan = *std::move(planned);
  state->arena = *std::move(arena);
  state->room = std::move(wanted.trips);
  state->seeds = planes_of(state->plan.seeds);
  state->gradients = planes_of(state->plan.gradients);
  EAGLE_RETURN_IF_ERROR(state->write_constants());
  return Reverse(std::move(state));
}

const std::vector<Reverse::Plane>& Reverse::seeds() const { return state_->seeds; }
const std::vector<Reverse::Plane>& Reverse::gradients() const { return state_->gradients; }
const Graph& Reverse::graph() const { return state_->graph; }
std::uint64_t Reverse::bytes() const { return state_->arena->bytes(); }
const std::vector<diff::LoopPlan>& Reverse::loops() const { return state_->plan.loops; }

Status Reverse::set_seed(std::size_t index, const ArrayView& values) {
  EAGLE_RETURN_IF_ERROR(check_like("seed", state_->seeds.at(index), values));
  const View& to = state_->plan.seeds[index].view;
  plane::copy_view(view_of_array(values), static_cast<const std::byte*>(values.data), to,
                   state_->arena->data());
  return state_->recording->session.send(state_->in_arena(to));
}

Status Reverse::get_gradient(std::size_t index, const ArrayView& into) const {
  EAGLE_RETURN_IF_ERROR(check_like("gradient", state_->gradients.at(index), into));
  const View& from = state_->plan.gradients[index].view;
  EAGLE_RETURN_IF_ERROR(state_->recording->session.fetch(state_->in_arena(from)));
  plane::copy_view(from, state_->arena->data(), view_of_array(into), static_cast<std::byte*>(into.data));
  return {};
}

bool Reverse::fits() const {
  const std::vector<std::int64_t>& trips = state_->recording->trips();
  for (std::size_t i = 0; i < state_->room.size() && i < trips.size(); ++i) {
    if (state_->room[i] > 0 && trips[i] > state_->room[i]) return false;
  }
  return true;
}

StatusOr<LaunchReport> Reverse::launch(const LaunchOptions& options) {
  Recording& recording = *state_->recording;
  const util::Busy::Guard guard(recording.in_use);
  if (!guard.entered()) return busy("reverse");
  EAGLE_RETURN_IF_ERROR(recording.check("reverse"));
  if (!fits()) {
    return Status(Reason::graph_state,
                  "reverse: a loop took more trips in the last launch than this pass has room for; "
                  "make another one");
  }
  EAGLE_RETURN_IF_ERROR(state_->update_params());
  StatusOr<LaunchReport> report = state_->graph.launch(1, options);
  // Whatever a launch that was cut short left half written is written anew by the next one.
  if (!report.ok()) (void)recording.session.accept(state_->whole_arena());
  return report;
}

}  // namespace eagle
