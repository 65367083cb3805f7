#include "engine/run/cuda/note_kernels.h"

#include <bit>
#include <string>
#include <vector>

#include "engine/kernel/builder.h"

namespace eagle::run::cuda {
namespace {

using kernel::Additions;
using kernel::Kernel;
using kernel::KernelBuilder;
using kernel::Opcode;
using kernel::Scalar;
using kernel::Type;
using Value = KernelBuilder::Value;

constexpr std::uint64_t any_number = std::uint64_t{1} << 40;  // as a loop may have (kernel::Limits)

// The element of this sample, part by part.
class Cell {
public:
  Cell(KernelBuilder& b, Type type) : b_(b), type_(type), whole_(b.state("cell", type)) {}

  [[nodiscard]] std::vector<Value> parts() {
    if (type_.rank == 0) return {whole_};
    std::vector<Value> all;
    for (int c = 0; c < type_.components(); ++c) all.push_back(b_.extract(whole_, static_cast<unsigned>(c)));
    return all;
  }
  void store(const std::vector<Value>& parts) {
    b_.commit("cell", type_.rank == 0 ? parts[0] : b_.compose(parts, type_));
  }

private:
  KernelBuilder& b_;
  Type type_;
  Value whole_;
};

KernelBuilder builder_for(const Type& type) {
  return KernelBuilder("add_notes", type.scalar == Scalar::f32 ? Scalar::f32 : Scalar::f64);
}

std::int64_t words_of(const Kernel& kernel, const kernel::Region& region, double most) {
  double words = 0;
  for (const kernel::Op& op : region.ops) {
    if (op.code == Opcode::accum_add) words += 2 + kernel.arguments[op.argument].type.components();
    double inside = 0;
    for (const kernel::Region& nested : op.regions)
      inside += static_cast<double>(words_of(kernel, nested, most));
    words += op.code == Opcode::while_ ? inside * static_cast<double>(op.max_trips) : inside;
  }
  return static_cast<std::int64_t>(std::min(words, most));
}

}  // namespace

Kernel add_columns_kernel(const Kernel& noting, const Additions& additions, std::size_t accumulator) {
  const Type type = noting.arguments[accumulator].type;
  KernelBuilder b = builder_for(type);
  const Value samples = b.integer_param("samples");
  std::vector<std::string> sites;
  for (std::size_t site = 0; site < additions.sites.size(); ++site) {
    if (additions.sites[site].argument != accumulator) continue;
    sites.push_back(std::to_string(site));
    b.table("element" + sites.back(), {Scalar::i64});
    b.table("value" + sites.back(), type);
  }
  Cell cell(b, type);
  const Value mine = b.sample_index();
  std::vector<Value> carried = {b.integer(0)};
  for (const Value& part : cell.parts()) carried.push_back(part);
  carried = b.begin_while(carried, any_number);
  carried = b.while_condition(b.lt(carried[0], samples));
  for (const std::string& site : sites) {
    const Value hit = b.eq(b.gather("element" + site, {carried[0]}), mine);
    const Value value = b.gather("value" + site, {carried[0]});
    for (std::size_t c = 1; c < carried.size(); ++c) {
      const Value part = type.rank == 0 ? value : b.extract(value, static_cast<unsigned>(c - 1));
      carried[c] = b.select(hit, b.add(carried[c], part), carried[c]);
    }
  }
  carried[0] = b.add(carried[0], b.integer(1));
  carried = b.end_while(carried);
  cell.store({carried.begin() + 1, carried.end()});
  return *b.finish();
}

Kernel add_words_kernel(const Kernel& noting, const Additions& additions, std::size_t accumulator) {
  const Type type = noting.arguments[accumulator].type;
  const int components = type.components();
  KernelBuilder b = builder_for(type);
  const Value samples = b.integer_param("samples");
  const Value room = b.integer_param("room");
  b.table("words", {Scalar::i64});
  b.table("values", {type.scalar});
  b.table("used", {Scalar::i64});
  Cell cell(b, type);
  const Value mine = b.sample_index();
  const std::int64_t values_a_word = 8 / kernel::bytes_of(type.scalar);

  // Carried: the sample, the word of its next note, and the cell. Past the last note of a sample comes the
  // first one of the next sample.
  std::vector<Value> carried = {b.integer(0), b.integer(0)};
  for (const Value& part : cell.parts()) carried.push_back(part);
  carried = b.begin_while(carried, any_number);
  carried = b.while_condition(b.lt(carried[0], samples));
  const Value sample = carried[0], word = carried[1];
  const Value there = b.lt(word, b.gather("used", {sample}));
  const Value note = b.add(b.mul(sample, room), b.select(there, word, b.integer(0)));
  const Value site = b.gather("words", {note});
  const Value element = b.gather("words", {b.add(note, b.integer(1))});
  Value ours = b.boolean(false);
  Value length = b.integer(2);
  for (std::size_t i = 0; i < additions.sites.size(); ++i) {
    const Value is = b.eq(site, b.integer(static_cast<std::int64_t>(i)));
    const std::uint32_t argument = additions.sites[i].argument;
    if (argument == accumulator) ours = b.op(Opcode::logical_or, {ours, is});
    length = b.select(is, b.integer(2 + noting.arguments[argument].type.components()), length);
  }
  const Value hit =
      b.op(Opcode::logical_and, {there, b.op(Opcode::logical_and, {ours, b.eq(element, mine)})});
  for (int c = 0; c < components; ++c) {
    // Within the words of the sample also where the note is another accumulator's, and shorter.
    const Value place = b.select(hit, b.add(note, b.integer(2 + c)), note);
    const Value value = b.gather("values", {b.mul(place, b.integer(values_a_word))});
    Value& part = carried[static_cast<std::size_t>(2 + c)];
    part = b.select(hit, b.add(part, value), part);
  }
  carried[0] = b.select(there, sample, b.add(sample, b.integer(1)));
  carried[1] = b.select(there, b.add(word, length), b.integer(0));
  carried = b.end_while(carried);
  cell.store({carried.begin() + 2, carried.end()});
  return *b.finish();
}

std::optional<std::int64_t> most_note_words(const Kernel& noting, std::int64_t most) {
  const std::int64_t words = words_of(noting, noting.body, static_cast<double>(most) + 1);
  if (words > most) return std::nullopt;
  return words;
}

Kernel fill_kernel(Scalar scalar, std::uint64_t bits) {
  KernelBuilder b("fill", scalar == Scalar::f32 ? Scalar::f32 : Scalar::f64);
  b.declare_output("y", {scalar});
  if (scalar == Scalar::boolean) {
    b.commit("y", b.boolean(bits != 0));
  } else if (scalar == Scalar::i64) {
    b.commit("y", b.integer(static_cast<std::int64_t>(bits)));
  } else if (scalar == Scalar::f32) {
    b.commit("y", b.real(std::bit_cast<float>(static_cast<std::uint32_t>(bits))));
  } else {
    b.commit("y", b.real(std::bit_cast<double>(bits)));
  }
  return *b.finish();
}

}  // namespace eagle::run::cuda
