#include "engine/diff/kernels.h"

#include <cstdio>
#include <cstdlib>
#include <limits>
#include <utility>
#include <vector>

#include "engine/kernel/builder.h"

namespace eagle::diff {
namespace {

using kernel::Kernel;
using kernel::KernelBuilder;
using kernel::Opcode;
using kernel::Scalar;
using kernel::Type;
using KernelValue = KernelBuilder::Value;

constexpr Type i64{Scalar::i64, 0, {1, 1}};
constexpr Type boolean{Scalar::boolean, 0, {1, 1}};

// None of these takes anything from outside but a type that a kernel has already.
Kernel finish(KernelBuilder& builder) {
  StatusOr<Kernel> kernel = builder.finish();
  if (!kernel.ok()) {
    std::fprintf(stderr, "eagle: a kernel of the reverse pass: %s\n", kernel.status().message().c_str());
    std::abort();
  }
  return *std::move(kernel);
}

KernelValue zero_of(KernelBuilder& b, const Type& type) {
  if (type.rank == 0) return b.real(0.0);
  return b.compose(std::vector<KernelValue>(static_cast<std::size_t>(type.components()), b.real(0.0)), type);
}

KernelValue row_of(KernelBuilder& b, KernelValue n) { return b.op(Opcode::floor_div, {b.sample_index(), n}); }

}  // namespace

Kernel add_into(const Type& type) {
  KernelBuilder b("add_into", type.scalar);
  const KernelValue into = b.state("into", type);
  const KernelValue from = type.rank == 0   ? b.scalar("from")
                           : type.rank == 1 ? b.vector("from", type.extents[0])
                                            : b.matrix("from", type.extents[0], type.extents[1]);
  b.commit("into", b.add(into, from));
  return finish(b);
}

Kernel clear_where_run(const Type& type) {
  KernelBuilder b("clear_where_run", type.scalar);
  const KernelValue done = b.state("done", boolean);
  const KernelValue bar = b.state("bar", type);
  b.commit("bar", b.select(done, bar, zero_of(b, type)));
  return finish(b);
}

Kernel spread(Scalar scalar) {
  KernelBuilder b("spread", scalar);
  b.table("g", {scalar, 0, {1, 1}});
  const KernelValue n = b.integer_param("n");
  const KernelValue into = b.state("into", {scalar, 0, {1, 1}});
  b.commit("into", b.add(into, b.gather("g", {row_of(b, n)})));
  return finish(b);
}

Kernel find_winners(Scalar scalar) {
  KernelBuilder b("find_winners", scalar);
  const KernelValue x = b.scalar("x");
  b.table("m", {scalar, 0, {1, 1}});
  const KernelValue n = b.integer_param("n");
  b.declare_output("w", i64);
  const KernelValue m = b.gather("m", {row_of(b, n)});
  const KernelValue both_nan = b.op(Opcode::logical_and, {b.ne(x, x), b.ne(m, m)});
  const KernelValue wins = b.op(Opcode::logical_or, {b.eq(x, m), both_nan});
  b.commit("w", b.select(wins, b.sample_index(), b.integer(std::numeric_limits<std::int64_t>::max())));
  return finish(b);
}

Kernel give_to_winner(Scalar scalar) {
  KernelBuilder b("give_to_winner", scalar);
  b.table("g", {scalar, 0, {1, 1}});
  b.table("first", i64);
  const KernelValue n = b.integer_param("n");
  const KernelValue into = b.state("into", {scalar, 0, {1, 1}});
  const KernelValue row = row_of(b, n);
  const KernelValue wins = b.eq(b.gather("first", {row}), b.sample_index());
  b.commit("into", b.select(wins, b.add(into, b.gather("g", {row})), into));
  return finish(b);
}

Kernel scatter(Scalar scalar) {
  KernelBuilder b("scatter", scalar);
  const KernelValue at = b.index("at");
  const KernelValue v = b.scalar("v");
  b.accumulator("into", {scalar, 0, {1, 1}});
  b.accum_add("into", v, {at});
  return finish(b);
}

Kernel count_up() {
  KernelBuilder b("count_up");
  const KernelValue i = b.state("i", i64);
  b.commit("i", b.add(i, b.integer(1)));
  return finish(b);
}

Kernel count_down() {
  KernelBuilder b("count_down");
  const KernelValue i = b.state("i", i64);
  b.commit("i", b.sub(i, b.integer(1)));
  return finish(b);
}

Kernel advance_slot() {
  KernelBuilder b("advance_slot");
  const KernelValue size = b.integer_param("size");
  const KernelValue phase = b.state("phase", i64);
  const KernelValue slot = b.state("slot", i64);
  const KernelValue next = b.add(phase, b.integer(1));
  const KernelValue full = b.ge(next, size);
  b.commit("phase", b.select(full, b.integer(0), next));
  b.commit("slot", b.select(full, b.add(slot, b.integer(1)), slot));
  return finish(b);
}

Kernel count_segments() {
  KernelBuilder b("count_segments");
  const KernelValue trips = b.index("trips");
  const KernelValue size = b.integer_param("size");
  b.declare_output("segments", i64);
  b.commit("segments", b.op(Opcode::floor_div, {b.add(trips, b.sub(size, b.integer(1))), size}));
  return finish(b);
}

Kernel previous_segment() {
  KernelBuilder b("previous_segment");
  const KernelValue trips = b.index("trips");
  const KernelValue size = b.integer_param("size");
  const KernelValue segment = b.state("segment", i64);
  b.declare_output("length", i64);
  const KernelValue previous = b.sub(segment, b.integer(1));
  const KernelValue rest = b.sub(trips, b.mul(previous, size));
  b.commit("segment", previous);
  b.commit("length", b.select(b.lt(rest, size), rest, size));
  return finish(b);
}

}  // namespace eagle::diff
