#include "engine/run/cpu/notes.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <type_traits>

namespace eagle::run {
namespace {

using kernel::Scalar;

// Integers wrap.
template <typename T>
T sum(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else {
    return a + b;
  }
}

// Whether elements mostly repeat the one before, by a look at a few places.
bool runs_are_long(const std::int64_t* elements, std::int64_t samples) {
  constexpr std::int64_t looks = 96, least_run = 12;
  if (samples < 2) return false;
  const std::int64_t apart = std::max(samples / looks, std::int64_t{1});
  std::int64_t looked = 0, changes = 0;
  for (std::int64_t i = 1; i < samples; i += apart, ++looked) changes += elements[i] != elements[i - 1];
  return changes * least_run < looked;
}

// While the element stays the same its value stays in a register, which makes many additions to one element
// four times as quick: through memory each has to wait for the one before.
template <typename T>
void add_runs(T* cells, const std::int64_t* elements, const T* values, std::int64_t samples) {
  std::int64_t current = -1;
  T value = 0;
  for (std::int64_t i = 0; i < samples; ++i) {
    const std::int64_t element = elements[i];
    if (element != current) {
      if (current >= 0) cells[current] = value;
      current = element;
      if (element >= 0) value = cells[element];
    }
    value = sum(value, values[i]);
  }
  if (current >= 0) cells[current] = value;
}

// Where elements change at every turn or so: a branch on that would be guessed wrong, and hold up the loads
// of cells that are far away.
template <typename T>
void add_each(T* cells, const std::int64_t* elements, const T* values, std::int64_t samples) {
  for (std::int64_t i = 0; i < samples; ++i) {
    if (elements[i] < 0) continue;
    T& cell = cells[elements[i]];
    cell = sum(cell, values[i]);
  }
}

// One op.
template <typename T>
void add_column(T* cells, const std::int64_t* elements, const T* values, std::int64_t samples) {
  return runs_are_long(elements, samples) ? add_runs(cells, elements, values, samples)
                                          : add_each(cells, elements, values, samples);
}

template <typename T>
T* component(std::byte* data, std::int64_t stride, int c) {
  return reinterpret_cast<T*>(data + c * stride);
}
template <typename T>
const T* component(const std::byte* data, std::int64_t stride, int c) {
  return reinterpret_cast<const T*>(data + c * stride);
}

template <typename T>
void add_columns_of(const Cells& cells, std::span<const NoteColumn> ops, std::int64_t samples) {
  for (int c = 0; c < cells.components; ++c) {
    T* elements_of_c = component<T>(cells.data, cells.component_stride, c);
    if (ops.size() == 1) {
      add_column(elements_of_c, ops[0].elements, component<T>(ops[0].values, ops[0].component_stride, c),
                 samples);
      continue;
    }
    for (std::int64_t i = 0; i < samples; ++i) {
      for (const NoteColumn& op : ops) {
        const std::int64_t element = op.elements[i];
        if (element < 0) continue;
        T& cell = elements_of_c[element];
        cell = sum(cell, component<T>(op.values, op.component_stride, c)[i]);
      }
    }
  }
}

template <typename T>
void sort_columns_of(const Cells& cells, std::span<const NoteColumn> ops, std::int64_t samples,
                     const SortedNotes& sorted) {
  const std::size_t stripes = sorted.begins.size() - 1;
  // Counted one stripe up, so that sums of counts are beginnings.
  std::fill(sorted.begins.begin(), sorted.begins.end(), 0);
  for (const NoteColumn& op : ops) {
    for (std::int64_t i = 0; i < samples; ++i) {
      if (op.elements[i] >= 0) ++sorted.begins[stripe_of(op.elements[i], stripes) + 1];
    }
  }
  std::partial_sum(sorted.begins.begin(), sorted.begins.end(), sorted.begins.begin());
  // Placed from each beginning on, which ends up as the next one's: moved back up at the end.
  for (std::int64_t i = 0; i < samples; ++i) {
    for (const NoteColumn& op : ops) {
      const std::int64_t element = op.elements[i];
      if (element < 0) continue;
      const std::int64_t place = sorted.begins[stripe_of(element, stripes)]++;
      sorted.elements[place] = element;
      for (int c = 0; c < cells.components; ++c) {
        component<T>(sorted.values, sorted.component_stride, c)[place] =
            component<T>(op.values, op.component_stride, c)[i];
      }
    }
  }
  std::copy_backward(sorted.begins.begin(), sorted.begins.end() - 1, sorted.begins.end());
  sorted.begins[0] = 0;
}

template <typename T>
void add_stripe_of(const Cells& cells, const SortedNotes& sorted, std::size_t stripe) {
  const std::int64_t begin = sorted.begins[stripe];
  const std::int64_t count = sorted.begins[stripe + 1] - begin;
  for (int c = 0; c < cells.components; ++c) {
    add_column(component<T>(cells.data, cells.component_stride, c), sorted.elements + begin,
               component<T>(sorted.values, sorted.component_stride, c) + begin, count);
  }
}

template <typename T>
void add_value(const Cells& cells, std::int64_t element, const std::uint64_t* words) {
  for (int c = 0; c < cells.components; ++c) {
    T value;
    std::memcpy(&value, words + c, sizeof(T));
    T& cell = component<T>(cells.data, cells.component_stride, c)[element];
    cell = sum(cell, value);
  }
}

}  // namespace

void add_columns(const Cells& cells, std::span<const NoteColumn> ops, std::int64_t samples) {
  switch (cells.scalar) {
    case Scalar::f64:
      return add_columns_of<double>(cells, ops, samples);
    case Scalar::f32:
      return add_columns_of<float>(cells, ops, samples);
    default:
      return add_columns_of<std::int64_t>(cells, ops, samples);  // accumulators have no other type
  }
}

void sort_columns(const Cells& cells, std::span<const NoteColumn> ops, std::int64_t samples,
                  const SortedNotes& sorted) {
  switch (cells.scalar) {
    case Scalar::f64:
      return sort_columns_of<double>(cells, ops, samples, sorted);
    case Scalar::f32:
      return sort_columns_of<float>(cells, ops, samples, sorted);
    default:
      return sort_columns_of<std::int64_t>(cells, ops, samples, sorted);
  }
}

void add_stripe(const Cells& cells, const SortedNotes& sorted, std::size_t stripe) {
  switch (cells.scalar) {
    case Scalar::f64:
      return add_stripe_of<double>(cells, sorted, stripe);
    case Scalar::f32:
      return add_stripe_of<float>(cells, sorted, stripe);
    default:
      return add_stripe_of<std::int64_t>(cells, sorted, stripe);
  }
}

void add_words(std::span<const Cells> cells, std::span<const std::uint64_t> words) {
  for (std::size_t at = 0; at < words.size();) {
    const Cells& to = cells[words[at]];
    const auto element = static_cast<std::int64_t>(words[at + 1]);
    const std::uint64_t* values = words.data() + at + 2;
    if (to.scalar == Scalar::f64) {
      add_value<double>(to, element, values);
    } else if (to.scalar == Scalar::f32) {
      add_value<float>(to, element, values);
    } else {
      add_value<std::int64_t>(to, element, values);
    }
    at += 2 + static_cast<std::size_t>(to.components);
  }
}

}  // namespace eagle::run
