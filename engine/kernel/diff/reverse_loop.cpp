// Loops backwards.
//
// A loop that took n trips is gone through from trip n - 1 to trip 0. What the loop carries is needed as it
// was before each trip, and a sample has no memory but values, so it is computed again from checkpoints: a
// stack of at most S copies of what is carried, the first of which is what the loop began with. While trips
// [p, b) are still to be gone through, and the newest checkpoint is of p, the state is advanced to the middle
// of them and becomes the newest checkpoint, until p is b - 1; then trip p is computed with its adjoint, and
// b is one less. For up to N trips S = log2(N) + 2 is enough, and no trip is computed more than log2(N) + 1
// times. Where S is smaller, since the loop carries much, the last trips before a checkpoint are reached from
// it again and again.
//
// In the new kernel that is one loop around two regions: advancing, which is the old body in a loop of its
// own, and one trip backwards. Lanes of different n go through it together.
#include <algorithm>
#include <bit>
#include <utility>

#include "engine/kernel/diff/reverse.h"
#include "engine/kernel/names.h"

namespace eagle::kernel::diff {

struct Reverse::Loop {
  const Op* op = nullptr;
  std::size_t slots = 0;            // S
  std::vector<std::size_t> active;  // what is carried and has an adjoint
  std::vector<ValueId> captured;    // values from outside that the body uses

  // What the new loop carries, in this order, as its body sees it.
  ValueId end = none;                        // b: trips [0, b) are still to be gone through
  ValueId count = none;                      // of checkpoints
  std::vector<ValueId> positions;            // by slot, the newest first
  std::vector<std::vector<ValueId>> states;  // by slot
  std::vector<Bar> bars;                     // by active; `taken` none where it is certain
  std::vector<Bar> outer;                    // by captured

  [[nodiscard]] std::vector<ValueId> carried() const {
    std::vector<ValueId> all = {end, count};
    all.insert(all.end(), positions.begin(), positions.end());
    for (const auto& state : states) all.insert(all.end(), state.begin(), state.end());
    append_bars(all);
    return all;
  }
  void append_bars(std::vector<ValueId>& all) const {
    for (const auto* list : {&bars, &outer}) {
      for (const Bar& bar : *list) {
        all.push_back(bar.value);
        if (bar.taken != none) all.push_back(bar.taken);
      }
    }
  }
  // The same, from values in the same order.
  void set_carried(const std::vector<ValueId>& all) {
    auto next = all.begin();
    end = *next++;
    count = *next++;
    for (ValueId& position : positions) position = *next++;
    for (auto& state : states) {
      for (ValueId& value : state) value = *next++;
    }
    for (auto* list : {&bars, &outer}) {
      for (Bar& bar : *list) {
        bar.value = *next++;
        if (bar.taken != none) bar.taken = *next++;
      }
    }
  }
};

Status Reverse::loop(const Op& op) {
  Loop loop;
  loop.op = &op;
  std::vector<std::optional<Bar>> taken;
  bool any = activity_.accumulates(op);
  for (std::size_t i = 0; i < op.results.size(); ++i) {
    taken.push_back(take(op.results[i]));
    any = any || taken.back();
    if (activity_.varied(op.results[i])) loop.active.push_back(i);
  }
  if (!any) return {};

  for (const Op& tested : op.regions[0].ops) {
    if (activity_.accumulates(tested)) {
      return refusal(op, Reason::bad_value,
                     "the condition of a loop adds to an accumulator, which is not gone through backwards; "
                     "add in the body");
    }
  }
  const std::string name = "a loop of at most " + std::to_string(op.max_trips) + " trips";
  constexpr std::uint64_t most_trips = std::uint64_t{1} << 39;
  if (op.max_trips > most_trips) {
    return refusal(op, Reason::bad_value,
                   name + " has no reverse derivative; state a largest number of trips of at most 2^39");
  }
  std::size_t components = 0;
  for (const ValueId operand : op.operands)
    components += static_cast<std::size_t>(primal_.type(operand).components());
  const auto enough = static_cast<std::size_t>(std::bit_width(op.max_trips - 1)) + 2;
  const std::size_t room = components == 0 ? enough : most_checkpoint_components / components;
  loop.slots = std::min({enough, room, static_cast<std::size_t>(op.max_trips)});
  if (loop.slots < std::min<std::size_t>(2, op.max_trips)) {
    return refusal(
        op, Reason::kernel_limit,
        name + " carries " + std::to_string(components) + " components, and " +
            std::to_string(most_checkpoint_components / 2) +
            " are the most of which checkpoints are kept on the way back; carry less through the loop, or "
            "make its trips steps of a run");
  }

  const std::set<ValueId> captured = activity_.captured(op.regions[1]);
  loop.captured.assign(captured.begin(), captured.end());
  loop.end = primal_.trips(op);
  loop.count = w_.integer(1);
  loop.positions.assign(loop.slots, w_.integer(0));
  loop.states.assign(loop.slots, primal_.now(op.operands));
  for (const std::size_t i : loop.active) {
    const bool certain = activity_.certain(op, i) && taken[i] && taken[i]->taken == none;
    if (taken[i]) {
      loop.bars.push_back({taken[i]->value, certain ? none : condition(taken[i]->taken)});
    } else {
      loop.bars.push_back({w_.zero(primal_.type(op.results[i])), w_.boolean(false)});
    }
  }
  for (const ValueId value : loop.captured)
    loop.outer.push_back({w_.zero(primal_.type(value)), w_.boolean(false)});

  const std::vector<ValueId> initial = loop.carried();
  Loop inner = loop;
  w_.begin();
  std::vector<ValueId> arguments;
  for (const ValueId value : initial) arguments.push_back(w_.region_argument(w_.type(value)));
  const ValueId goes_on = w_.compare(Opcode::gt, arguments[0], w_.integer(0));
  Region test = w_.end({goes_on});

  w_.begin();
  arguments.clear();
  for (const ValueId value : initial) arguments.push_back(w_.region_argument(w_.type(value)));
  inner.set_carried(arguments);
  Status status;
  const ValueId position = inner.positions[0];
  const ValueId last = w_.sub(inner.end, w_.integer(1));
  const ValueId stop = next_stop(inner);
  const std::vector<ValueId> state = advance(inner, position, inner.states[0], stop);

  // One trip back, or one more checkpoint.
  std::vector<ValueId> next;
  if (inner.slots == 1) {
    next = reversed_trip(inner, state, status);
  } else {
    const ValueId arrived = w_.compare(Opcode::eq, stop, last);
    w_.begin();
    std::vector<ValueId> back = reversed_trip(inner, state, status);
    Region then = w_.end(std::move(back));
    w_.begin();
    std::vector<ValueId> kept = {inner.end, w_.add(inner.count, w_.integer(1)), stop};
    kept.insert(kept.end(), inner.positions.begin(), inner.positions.end() - 1);
    kept.insert(kept.end(), state.begin(), state.end());
    for (std::size_t slot = 0; slot + 1 < inner.slots; ++slot)
      kept.insert(kept.end(), inner.states[slot].begin(), inner.states[slot].end());
    inner.append_bars(kept);
    Region otherwise = w_.end(std::move(kept));
    next = w_.branch(arrived, std::move(then), std::move(otherwise));
  }
  EAGLE_RETURN_IF_ERROR(status);
  Region body = w_.end(std::move(next));
  w_.at(op.location);
  loop.set_carried(w_.loop(initial, 2 * op.max_trips, std::move(test), std::move(body)));

  for (std::size_t a = 0; a < loop.active.size(); ++a)
    contribute(op.operands[loop.active[a]], loop.bars[a].value, loop.bars[a].taken);
  for (std::size_t c = 0; c < loop.captured.size(); ++c)
    contribute(loop.captured[c], loop.outer[c].value, loop.outer[c].taken);
  return {};
}

// Where to advance to: the next checkpoint, or the last trip that is to be gone through.
ValueId Reverse::next_stop(const Loop& loop) {
  const ValueId one = w_.integer(1);
  const ValueId last = w_.sub(loop.end, one);
  if (loop.slots == 1) return last;
  const ValueId position = loop.positions[0];
  const ValueId length = w_.sub(loop.end, position);
  const ValueId free = w_.sub(w_.integer(static_cast<std::int64_t>(loop.slots)), loop.count);
  // All of them where there is room, else the middle.
  const ValueId fits = w_.compare(Opcode::le, length, w_.add(free, one));
  const ValueId step = w_.select(fits, one, w_.of(Opcode::shift_right, length, one));
  const ValueId keeps =
      w_.both(w_.compare(Opcode::gt, free, w_.integer(0)), w_.compare(Opcode::gt, length, one));
  return w_.select(keeps, w_.add(position, step), last);
}

// The state before trip `stop`, from that before trip `position`.
std::vector<ValueId> Reverse::advance(const Loop& loop, ValueId position, const std::vector<ValueId>& state,
                                      ValueId stop) {
  const Region& body = loop.op->regions[1];
  std::vector<ValueId> initial = {position};
  initial.insert(initial.end(), state.begin(), state.end());

  w_.begin();
  const ValueId tested = w_.region_argument(integer_type);
  for (const ValueId value : state) w_.region_argument(w_.type(value));
  const ValueId goes_on = w_.compare(Opcode::lt, tested, stop);
  Region condition = w_.end({goes_on});

  w_.begin();
  const ValueId count = w_.region_argument(integer_type);
  for (const ValueId argument : body.arguments)
    primal_.map(argument, w_.region_argument(primal_.type(argument)));
  primal_.ops(body);
  std::vector<ValueId> next = {w_.add(count, w_.integer(1))};
  for (const ValueId yield : body.yields) next.push_back(primal_.now(yield));
  Region trip = w_.end(std::move(next));

  std::vector<ValueId> results =
      w_.loop(std::move(initial), loop.op->max_trips, std::move(condition), std::move(trip));
  results.erase(results.begin());
  return results;
}

// Trip end - 1, which begins with `state`; gives what the new loop carries afterwards.
std::vector<ValueId> Reverse::reversed_trip(Loop& loop, const std::vector<ValueId>& state, Status& status) {
  const Region& body = loop.op->regions[1];
  Sums before = std::exchange(sums_, {});
  primal_.map(body.arguments, state);
  primal_.ops(body);
  for (std::size_t a = 0; a < loop.active.size(); ++a)
    contribute(body.yields[loop.active[a]], loop.bars[a].value, loop.bars[a].taken);
  status = ops(body);
  Loop next = loop;
  for (std::size_t a = 0; a < loop.active.size(); ++a) {
    const ValueId argument = body.arguments[loop.active[a]];
    const std::optional<Bar> bar = take(argument);
    const bool certain = loop.bars[a].taken == none;
    next.bars[a] = bar ? Bar{bar->value, certain ? none : condition(bar->taken)}
                       : Bar{w_.zero(primal_.type(argument)), certain ? none : w_.boolean(false)};
  }
  for (std::size_t c = 0; c < loop.captured.size(); ++c) {
    if (const std::optional<Bar> bar = take(loop.captured[c])) {
      next.outer[c] = {w_.add(loop.outer[c].value, bar->value),
                       bar->taken == none ? w_.boolean(true) : w_.either(loop.outer[c].taken, bar->taken)};
    }
  }
  sums_ = std::move(before);

  // The newest checkpoint goes once nothing is left behind it.
  next.end = w_.sub(loop.end, w_.integer(1));
  if (loop.slots > 1) {
    const ValueId spent = w_.compare(Opcode::ge, loop.positions[0], next.end);
    next.count = w_.select(spent, w_.sub(loop.count, w_.integer(1)), loop.count);
    for (std::size_t slot = 0; slot + 1 < loop.slots; ++slot) {
      next.positions[slot] = w_.select(spent, loop.positions[slot + 1], loop.positions[slot]);
      for (std::size_t i = 0; i < state.size(); ++i)
        next.states[slot][i] = w_.select(spent, loop.states[slot + 1][i], loop.states[slot][i]);
    }
  }
  return next.carried();
}

}  // namespace eagle::kernel::diff
