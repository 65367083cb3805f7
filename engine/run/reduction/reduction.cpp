#include "engine/run/reduction/reduction.h"

#include <array>
#include <cstring>

#include "engine/run/reduction/leaves.h"

namespace eagle::run {
namespace {

template <typename Value>
EAGLE_INLINE Cell to_cell(const Value& value) {
  static_assert(sizeof(Value) <= sizeof(Cell));
  Cell cell = {};
  std::memcpy(cell.bytes, &value, sizeof(value));
  return cell;
}
template <typename Value>
EAGLE_INLINE Value from_cell(const Cell& cell) {
  Value value;
  std::memcpy(static_cast<void*>(&value), cell.bytes, sizeof(value));
  return value;
}

template <typename Kind>
struct CombineCells {
  EAGLE_INLINE Cell operator()(const Cell& left, const Cell& right) const {
    return to_cell(
        Kind::combine(from_cell<typename Kind::Value>(left), from_cell<typename Kind::Value>(right)));
  }
};
template <typename Kind>
Cell combine_cells(Cell left, Cell right) {
  return CombineCells<Kind>()(left, right);
}

template <typename Kind>
void finish_cell(Cell value, std::byte* out) {
  const typename Kind::Element result = Kind::finish(from_cell<typename Kind::Value>(value));
  std::memcpy(out, &result, sizeof(result));
}

// Leaves that are appended as one subtree where they are one: the pairs within cost no bookkeeping.
constexpr int block_level = 4;
constexpr std::int64_t block_leaves = std::int64_t{1} << block_level;

template <typename Kind>
EAGLE_INLINE typename Kind::Value block(const typename Kind::Element* x) {
  std::array<typename Kind::Value, block_leaves> values;
  for (typename Kind::Value& value : values) {
    const typename Kind::Element* const next = x + Kind::leaf_samples;
    if constexpr (requires { Kind::leaf(x, Kind::leaf_samples, next); }) {
      value = Kind::leaf(x, Kind::leaf_samples, next);
    } else {
      value = Kind::leaf(x, Kind::leaf_samples);
    }
    x = next;
  }
  for (std::size_t count = values.size() / 2; count >= 1; count /= 2) {
    for (std::size_t i = 0; i < count; ++i) values[i] = Kind::combine(values[2 * i], values[2 * i + 1]);
  }
  return values[0];
}

template <typename Kind>
EAGLE_INLINE void append_body(Partial& partial, const std::byte* bytes, std::int64_t base,
                              std::int64_t count) {
  using Element = typename Kind::Element;
  // Elements are aligned in every plane that the engine accepts.
  const auto* x = reinterpret_cast<const Element*>(bytes);
  const Element* const end = x + count;
  std::int64_t leaf = base / Kind::leaf_samples;
  while (x < end) {
    const bool whole = leaf % block_leaves == 0 && end - x >= block_leaves * Kind::leaf_samples;
    if (whole) {
      partial.append({leaf / block_leaves, block_level, to_cell(block<Kind>(x))}, CombineCells<Kind>());
      x += block_leaves * Kind::leaf_samples;
      leaf += block_leaves;
    } else {
      const std::int64_t samples = std::min<std::int64_t>(end - x, Kind::leaf_samples);
      partial.append({leaf, 0, to_cell(Kind::leaf(x, samples))}, CombineCells<Kind>());
      x += samples;
      leaf += 1;
    }
  }
}

// The same source for each level; x86 alone has more than one.
template <typename Kind>
void append_plain(Partial& partial, const std::byte* x, std::int64_t base, std::int64_t count) {
  append_body<Kind>(partial, x, base, count);
}
#if defined(__x86_64__)
template <typename Kind>
[[gnu::target("avx2")]] void append_avx2(Partial& partial, const std::byte* x, std::int64_t base,
                                         std::int64_t count) {
  append_body<Kind>(partial, x, base, count);
}
template <typename Kind>
[[gnu::target("avx512f,avx512vl,avx512dq,avx512bw")]] void append_avx512(Partial& partial, const std::byte* x,
                                                                         std::int64_t base,
                                                                         std::int64_t count) {
  append_body<Kind>(partial, x, base, count);
}
#endif

constexpr std::array<std::string_view, 3> level_names = {"plain", "avx2", "avx512"};

std::size_t count_levels() {
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2")) return 1;
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
  return wide ? 3 : 2;
#else
  return 1;
#endif
}

// `Wide` differs from `Kind` in nothing but speed, with the widest vectors.
template <typename Kind, typename Wide = Kind>
const Reducer& at_level(std::size_t level) {
  const auto make = [](Reducer::Append append) {
    return Reducer(append, combine_cells<Kind>, finish_cell<Kind>, Kind::leaf_samples);
  };
#if defined(__x86_64__)
  static const std::array<Reducer, 3> reducers = {make(append_plain<Kind>), make(append_avx2<Kind>),
                                                  make(append_avx512<Wide>)};
#else
  static const std::array<Reducer, 1> reducers = {make(append_plain<Kind>)};
#endif
  return reducers[level];
}

template <typename T>
const Reducer& of_reals(const Reduction& reduction, std::size_t level) {
  switch (reduction.op) {
    case kernel::ReduceOp::max:
      return at_level<Extreme<T, true>>(level);
    case kernel::ReduceOp::min:
      return at_level<Extreme<T, false>>(level);
    default:
      return reduction.compensated ? at_level<CompensatedSum<T, false>, CompensatedSum<T, true>>(level)
                                   : at_level<Sum<T>>(level);
  }
}

template <typename T>
const Reducer& of_integers(const Reduction& reduction, std::size_t level) {
  switch (reduction.op) {
    case kernel::ReduceOp::max:
      return at_level<IntegerExtreme<T, true>>(level);
    case kernel::ReduceOp::min:
      return at_level<IntegerExtreme<T, false>>(level);
    default:
      return at_level<IntegerSum<T>>(level);
  }
}

const Reducer& find(const Reduction& reduction, std::size_t level) {
  switch (reduction.scalar) {
    case kernel::Scalar::f64:
      return of_reals<double>(reduction, level);
    case kernel::Scalar::f32:
      return of_reals<float>(reduction, level);
    case kernel::Scalar::i64:
      return of_integers<std::int64_t>(reduction, level);
    case kernel::Scalar::i32:
      return of_integers<std::int32_t>(reduction, level);
    case kernel::Scalar::boolean:
      break;
  }
  return reduction.op == kernel::ReduceOp::all ? at_level<Logic<true>>(level) : at_level<Logic<false>>(level);
}

}  // namespace

void Reducer::append(Partial& partial, const Partial& later) const { partial.append(later, combine_); }

void Reducer::append(Partial& partial, const Partial::Node& later) const { partial.append(later, combine_); }

void Reducer::finish(const Partial& partial, std::byte* out) const { finish_(partial.root(combine_), out); }

std::span<const std::string_view> vector_levels() {
  static const std::size_t count = count_levels();
  return std::span(level_names).first(count);
}

const Reducer& reducer_for(const Reduction& reduction) { return find(reduction, vector_levels().size() - 1); }

const Reducer& reducer_for(const Reduction& reduction, std::string_view level) {
  std::size_t index = 0;
  while (index + 1 < vector_levels().size() && level_names[index] != level) ++index;
  return find(reduction, index);
}

}  // namespace eagle::run
