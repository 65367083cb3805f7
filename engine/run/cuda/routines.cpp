#include "engine/run/cuda/routines.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "engine/codegen/device_arch.h"

namespace eagle::run::cuda {
namespace {

using plane::DType;

// The text of a routine, line by line.
class Text {
public:
  Text(std::string_view arch, std::size_t words) {
    const auto known = codegen::find_device_arch(arch);
    const int version = std::max(known.ok() ? known->ptx : 63, 63);
    add(".version " + std::to_string(version / 10) + "." + std::to_string(version % 10));
    add(".target " + std::string(arch));
    add(".address_size 64");
    bytes_ = std::to_string(8 * words);
  }
  void add(std::string_view line) {
    text_ += line;
    text_ += '\n';
  }
  void begin() {
    add(".visible .entry " + std::string(routine_entry) + "(.param .align 8 .b8 words[" + bytes_ + "])\n{");
    add(".reg .pred %p<32>;\n.reg .b16 %h<8>;\n.reg .b32 %r<16>;\n.reg .f32 %f<8>;\n.reg .b64 %l<64>;\n.reg "
        ".f64 %d<8>;");
  }
  // The word of that number.
  void word(std::string_view into, std::size_t number) {
    add("ld.param.u64 " + std::string(into) + ", [words+" + std::to_string(8 * number) + "];");
  }
  // So many bytes from anywhere, as an integer without a sign.
  void load(const std::string& into, const std::string& address, std::int64_t bytes, std::int64_t unit) {
    const std::string type = unit_type(unit);
    for (std::int64_t at = 0; at < bytes; at += unit) {
      const std::string part = at == 0 ? into : "%l60";
      add("ld.global." + type + " " + part + ", [" + address + "+" + std::to_string(at) + "];");
      if (at == 0) continue;
      add("shl.b64 %l60, %l60, " + std::to_string(8 * at) + ";");
      add("or.b64 " + into + ", " + into + ", %l60;");
    }
  }
  void store(const std::string& address, const std::string& value, std::int64_t bytes, std::int64_t unit) {
    const std::string type = unit_type(unit);
    for (std::int64_t at = 0; at < bytes; at += unit) {
      std::string part = value;
      if (at > 0) {
        add("shr.u64 %l60, " + value + ", " + std::to_string(8 * at) + ";");
        part = "%l60";
      }
      add("st.global." + type + " [" + address + "+" + std::to_string(at) + "], " + part + ";");
    }
  }
  // First sample and stride of this thread: %l0, %l1.
  void threads() {
    add("mov.u32 %r0, %ctaid.x;\nmov.u32 %r1, %ntid.x;\nmov.u32 %r2, %tid.x;\nmov.u32 %r3, %nctaid.x;");
    add("mul.wide.u32 %l0, %r0, %r1;\ncvt.u64.u32 %l1, %r2;\nadd.s64 %l0, %l0, %l1;\nmul.wide.u32 %l1, %r3, "
        "%r1;");
  }
  std::string end() {
    add("ret;\n}");
    return std::move(text_);
  }

private:
  static std::string unit_type(std::int64_t unit) {
    return unit == 8 ? "u64" : unit == 4 ? "u32" : unit == 2 ? "u16" : "u8";
  }
  std::string text_;
  std::string bytes_;
};

std::size_t word_of(std::size_t offset) { return offset / 8; }

// ---- copies

struct Axis {
  std::int64_t count = 1, source = 0, destination = 0;
};

// The largest power of two, up to 8, that divides all of these.
std::int64_t unit_of(std::initializer_list<std::int64_t> numbers) {
  std::int64_t unit = 8;
  for (const std::int64_t number : numbers) {
    while (number % unit != 0) unit /= 2;
  }
  return unit;
}

bool is_known(DType dtype) { return dtype != DType::other; }

// Turns %l10, the bits of one type, into %l11, those of another.
void convert(Text& text, DType from, DType to) {
  const bool real = from == DType::f64 || from == DType::f32;
  // To one of the two widest types of its kind first.
  if (from == DType::f64) text.add("mov.b64 %d0, %l10;");
  if (from == DType::f32) text.add("cvt.u32.u64 %r4, %l10;\nmov.b32 %f0, %r4;\ncvt.f64.f32 %d0, %f0;");
  if (from == DType::i32) text.add("cvt.s64.s32 %l12, %l10;");
  if (from == DType::i64) text.add("mov.b64 %l12, %l10;");
  if (from == DType::boolean) text.add("setp.ne.s64 %p1, %l10, 0;\nselp.b64 %l12, 1, 0, %p1;");
  switch (to) {
    case DType::f64:
      if (!real) text.add("cvt.rn.f64.s64 %d0, %l12;");
      text.add("mov.b64 %l11, %d0;");
      return;
    case DType::f32:
      text.add(real ? "cvt.rn.f32.f64 %f1, %d0;" : "cvt.rn.f32.s64 %f1, %l12;");
      text.add("mov.b32 %r5, %f1;\ncvt.u64.u32 %l11, %r5;");
      return;
    case DType::i64:
    case DType::i32:
      if (real) {
        const std::string type = to == DType::i64 ? "s64" : "s32";
        const std::string whole = to == DType::i64 ? "%l13" : "%r5";
        text.add("cvt.rzi." + type + ".f64 " + whole + ", %d0;");  // saturates
        if (to == DType::i32) text.add("cvt.u64.u32 %l13, %r5;");
        text.add("setp.nan.f64 %p2, %d0, %d0;\nselp.b64 %l11, 0, %l13, %p2;");
      } else {
        text.add("mov.b64 %l11, %l12;");
      }
      return;
    default:
      text.add(real ? "setp.neu.f64 %p3, %d0, 0d0000000000000000;" : "setp.ne.s64 %p3, %l12, 0;");
      text.add("selp.b64 %l11, 1, 0, %p3;");
  }
}

// Axes of more than one element, innermost first; those that continue each other are one.
std::vector<Axis> axes_of(const plane::View& source, const plane::View& destination) {
  std::vector<Axis> axes;
  for (std::size_t i = source.shape.size(); i-- > 0;) {
    const Axis axis{source.shape[i], source.strides[i], destination.strides[i]};
    if (axis.count == 1) continue;
    if (!axes.empty() && axis.source == axes.back().source * axes.back().count &&
        axis.destination == axes.back().destination * axes.back().count) {
      axes.back().count *= axis.count;
    } else {
      axes.push_back(axis);
    }
  }
  return axes;
}

// The row that the index cell chooses, in bytes of both sides: adds to the addresses %l3 and %l4.
void choose_row(Text& text) {
  text.word("%l20", word_of(offsetof(CopyWords, index)));
  text.add("setp.eq.s64 %p4, %l20, 0;\n@%p4 bra $chosen;");
  text.word("%l21", word_of(offsetof(CopyWords, index_bytes)));
  text.add("setp.eq.s64 %p5, %l21, 4;\n@%p5 bra $small;");
  text.load("%l22", "%l20", 8, 1);
  text.add("bra $loaded;\n$small:");
  text.load("%l22", "%l20", 4, 1);
  text.add("cvt.s64.s32 %l22, %l22;\n$loaded:");
  text.word("%l23", word_of(offsetof(CopyWords, rows)));
  text.add("sub.s64 %l23, %l23, 1;\nmax.s64 %l22, %l22, 0;\nmin.s64 %l22, %l22, %l23;");
  text.word("%l24", word_of(offsetof(CopyWords, source_row)));
  text.word("%l25", word_of(offsetof(CopyWords, destination_row)));
  text.add("mad.lo.s64 %l3, %l22, %l24, %l3;\nmad.lo.s64 %l4, %l22, %l25, %l4;\n$chosen:");
}

std::string copy_text(const graph::Copy& copy, const std::vector<Axis>& axes, std::int64_t from_unit,
                      std::int64_t to_unit, std::string_view arch) {
  Text text(arch, sizeof(CopyWords) / 8 + 3 * axes.size());
  text.begin();
  text.threads();
  text.word("%l2", word_of(offsetof(CopyWords, elements)));
  text.word("%l3", word_of(offsetof(CopyWords, source)));
  text.word("%l4", word_of(offsetof(CopyWords, destination)));
  choose_row(text);
  text.add("$next:\nsetp.ge.s64 %p0, %l0, %l2;\n@%p0 bra $done;");
  text.add("mov.b64 %l5, %l0;\nmov.b64 %l6, %l3;\nmov.b64 %l7, %l4;");
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    const std::size_t first = sizeof(CopyWords) / 8 + 3 * axis;
    text.word("%l8", first);
    text.add("rem.s64 %l9, %l5, %l8;\ndiv.s64 %l5, %l5, %l8;");
    text.word("%l8", first + 1);
    text.add("mad.lo.s64 %l6, %l9, %l8, %l6;");
    text.word("%l8", first + 2);
    text.add("mad.lo.s64 %l7, %l9, %l8, %l7;");
  }
  const auto from = static_cast<std::int64_t>(copy.source.item_bytes);
  const auto to = static_cast<std::int64_t>(copy.destination.item_bytes);
  if (copy.source.dtype != copy.destination.dtype && is_known(copy.source.dtype) &&
      is_known(copy.destination.dtype)) {
    text.load("%l10", "%l6", from, from_unit);
    convert(text, copy.source.dtype, copy.destination.dtype);
    text.store("%l7", "%l11", to, to_unit);
  } else {
    // The bytes as they are, as many at a time as both sides' addresses allow.
    const std::int64_t unit = std::min({from_unit, to_unit, unit_of({to})});
    text.add("mov.b64 %l14, 0;\n$bytes:");
    text.load("%l10", "%l6", unit, unit);
    text.store("%l7", "%l10", unit, unit);
    const std::string each = std::to_string(unit);
    text.add("add.s64 %l6, %l6, " + each + ";\nadd.s64 %l7, %l7, " + each + ";\nadd.s64 %l14, %l14, " + each +
             ";");
    text.add("setp.lt.s64 %p6, %l14, " + std::to_string(to) + ";\n@%p6 bra $bytes;");
  }
  text.add("add.s64 %l0, %l0, %l1;\nbra $next;\n$done:");
  return text.end();
}

// ---- cells

// A cell of one integer or bool: its value into `into`, which is 0 where there is no cell.
void load_cell(Text& text, const std::string& into, std::size_t address_word, const std::string& label) {
  text.word("%l30", address_word);
  text.word("%l31", address_word + 1);
  text.word("%l32", address_word + 2);
  text.add("mov.b64 " + into + ", 0;\nsetp.eq.s64 %p8, %l30, 0;\n@%p8 bra $" + label + "_end;");
  text.add("mov.b64 %l33, 0;\n$" + label + ":");
  text.add(
      "add.s64 %l34, %l30, %l33;\nld.global.u8 %l35, [%l34];\nshl.b64 %l36, %l33, 3;\ncvt.u32.u64 %r6, "
      "%l36;");
  text.add("shl.b64 %l35, %l35, %r6;\nor.b64 " + into + ", " + into + ", %l35;");
  text.add("add.s64 %l33, %l33, 1;\nsetp.lt.s64 %p9, %l33, %l31;\n@%p9 bra $" + label + ";");
  // The sign, or of a bool whether it is not 0.
  text.add("shl.b64 %l37, %l31, 3;\ncvt.u32.u64 %r6, %l37;\nsub.s32 %r6, 64, %r6;");
  text.add("shl.b64 " + into + ", " + into + ", %r6;\nshr.s64 " + into + ", " + into + ", %r6;");
  text.add("setp.eq.s64 %p10, %l32, 0;\n@%p10 bra $" + label + "_end;");
  text.add("setp.ne.s64 %p11, " + into + ", 0;\nselp.b64 " + into + ", 1, 0, %p11;\n$" + label + "_end:");
}

void declare_set_conditional(Text& text) {
  text.add(".extern .func cudaGraphSetConditional\n(\n.param .b64 handle,\n.param .b32 value\n);");
}

void set_conditional(Text& text, const std::string& handle, const std::string& value) {
  text.add("{\n.param .b64 param0;\nst.param.b64 [param0], " + handle +
           ";\n.param .b32 param1;\nst.param.b32 [param1], " + value +
           ";\ncall.uni cudaGraphSetConditional, (param0, param1);\n}");
}

}  // namespace

CopyRoutine copy_routine(const graph::Copy& whole, std::string_view arch) {
  graph::Copy copy = whole;
  CopyWords words;
  if (copy.index) {
    plane::View& stack = copy.into_stack() ? copy.destination : copy.source;
    words.rows = stack.shape.front();
    (copy.into_stack() ? words.destination_row : words.source_row) = stack.strides.front();
    words.index_bytes = static_cast<std::int64_t>(copy.index->view.item_bytes);
    stack.shape.erase(stack.shape.begin());
    stack.strides.erase(stack.strides.begin());
  }
  words.elements = plane::elements(copy.source);
  const std::vector<Axis> axes = axes_of(copy.source, copy.destination);
  // Planes begin at multiples of 256.
  std::int64_t from =
      unit_of({copy.source.offset, static_cast<std::int64_t>(copy.source.item_bytes), words.source_row});
  std::int64_t to = unit_of({copy.destination.offset, static_cast<std::int64_t>(copy.destination.item_bytes),
                             words.destination_row});
  for (const Axis& axis : axes) {
    from = std::min(from, unit_of({axis.source}));
    to = std::min(to, unit_of({axis.destination}));
  }
  CopyRoutine made;
  made.elements = words.elements;
  made.ptx = copy_text(copy, axes, from, to, arch);
  made.words.resize(sizeof words / 8);
  std::memcpy(made.words.data(), &words, sizeof words);
  for (const Axis& axis : axes) {
    for (const std::int64_t number : {axis.count, axis.source, axis.destination})
      made.words.push_back(static_cast<std::uint64_t>(number));
  }
  return made;
}

std::string guard_ptx(std::string_view arch) {
  Text text(arch, sizeof(GuardWords) / 8);
  declare_set_conditional(text);
  text.begin();
  // The loop's count of bodies, and its cell.
  text.word("%l40", word_of(offsetof(GuardWords, ran)));
  text.add("mov.b64 %l41, 0;\nsetp.eq.s64 %p12, %l40, 0;\n@%p12 bra $counted;");
  text.word("%l42", word_of(offsetof(GuardWords, back)));
  text.add("setp.eq.s64 %p13, %l42, 0;\n@%p13 bra $entered;");
  text.add("ld.global.u64 %l41, [%l40];\nadd.s64 %l41, %l41, 1;\n$entered:\nst.global.u64 [%l40], %l41;");
  text.word("%l43", word_of(offsetof(GuardWords, iterations)));
  text.add("setp.eq.s64 %p14, %l43, 0;\n@%p14 bra $counted;");
  text.word("%l44", word_of(offsetof(GuardWords, iterations_bytes)));
  text.store("%l43", "%l41", 4, 1);
  text.add("setp.eq.s64 %p15, %l44, 4;\n@%p15 bra $counted;");
  text.add("shr.u64 %l45, %l41, 32;\nadd.s64 %l43, %l43, 4;");
  text.store("%l43", "%l45", 4, 1);
  text.add("$counted:");
  load_cell(text, "%l46", word_of(offsetof(GuardWords, count)), "count");
  load_cell(text, "%l47", word_of(offsetof(GuardWords, baseline)), "baseline");
  text.word("%l48", word_of(offsetof(GuardWords, negated)));
  text.add("setp.ne.s64 %p16, %l46, %l47;\nselp.b64 %l49, 1, 0, %p16;\nxor.b64 %l49, %l49, %l48;");
  // Of a loop: bodies are left.
  text.word("%l50", word_of(offsetof(GuardWords, most)));
  text.add("setp.lt.s64 %p17, %l41, %l50;\nselp.b64 %l51, 1, 0, %p17;\nselp.b64 %l51, 1, %l51, %p12;");
  text.add("and.b64 %l49, %l49, %l51;");
  text.word("%l52", word_of(offsetof(GuardWords, cancel)));
  text.add("ld.global.u8 %l53, [%l52];\nsetp.ne.s64 %p18, %l53, 0;\nselp.b64 %l49, 0, %l49, %p18;");
  text.word("%l54", word_of(offsetof(GuardWords, handle)));
  text.add("cvt.u32.u64 %r8, %l49;");
  set_conditional(text, "%l54", "%r8");
  return text.end();
}

std::string step_ptx(std::string_view arch, bool sets) {
  Text text(arch, sizeof(StepWords) / 8);
  if (sets) declare_set_conditional(text);
  text.begin();
  text.word("%l0", word_of(offsetof(StepWords, state)));
  text.word("%l1", word_of(offsetof(StepWords, counts)));
  text.word("%l2", word_of(offsetof(StepWords, taken)));
  const auto field = [](std::string_view register_, std::size_t offset) {
    return "[" + std::string(register_) + "+" + std::to_string(offset) + "]";
  };
  const std::string steps = field("%l0", offsetof(StepState, steps));
  const std::string last = field("%l0", offsetof(StepState, last_step));
  const std::string bodies = field("%l0", offsetof(StepState, bodies));
  const std::string finished = "[%l1]", longest = "[%l1+8]";  // of a DeviceCounts
  text.add("ld.global.u64 %l3, " + steps + ";\nsetp.eq.s64 %p0, %l2, 0;\n@%p0 bra $go_on;");
  // The last step is of this body where any sample took one.
  text.add("ld.global.u64 %l4, " + longest + ";\nmov.b64 %l5, 0;\nst.global.u64 " + longest + ", %l5;");
  text.add("setp.eq.s64 %p1, %l4, 0;\n@%p1 bra $none_moved;\nadd.s64 %l4, %l3, %l4;");
  text.add("st.global.u64 " + last + ", %l4;\n$none_moved:");
  text.add("add.s64 %l3, %l3, %l2;\nst.global.u64 " + steps + ", %l3;");
  text.add("ld.global.u64 %l6, " + bodies + ";\nadd.s64 %l6, %l6, 1;\nst.global.u64 " + bodies + ", %l6;");
  text.add("$go_on:");
  if (!sets) return text.end();
  text.word("%l7", word_of(offsetof(StepWords, handle)));
  text.add("setp.eq.s64 %p2, %l7, 0;\n@%p2 bra $done;");
  text.add("ld.global.u64 %l8, " + field("%l0", offsetof(StepState, live)) + ";\nld.global.u64 %l9, " +
           finished + ";\nsetp.gt.s64 %p3, %l8, %l9;\nselp.b64 %l10, 1, 0, %p3;");
  text.word("%l11", word_of(offsetof(StepWords, next)));
  text.word("%l12", word_of(offsetof(StepWords, limit)));
  text.add(
      "ld.global.u64 %l12, [%l12];\nsub.s64 %l12, %l12, %l11;\nsetp.le.s64 %p4, %l3, %l12;\nselp.b64 %l10, "
      "%l10, 0, %p4;");
  text.add("ld.global.u64 %l13, " + field("%l0", offsetof(StepState, cancel)) +
           ";\nsetp.eq.s64 %p5, %l13, 0;\nselp.b64 %l10, %l10, 0, %p5;\ncvt.u32.u64 %r8, %l10;");
  set_conditional(text, "%l7", "%r8");
  text.add("$done:");
  return text.end();
}

std::string count_zeros_ptx(std::string_view arch) {
  Text text(arch, 3);
  text.begin();
  text.threads();
  text.word("%l2", 0);
  text.word("%l3", 1);
  text.word("%l4", 2);
  text.add("mov.b64 %l5, 0;\n$next:\nsetp.ge.s64 %p0, %l0, %l2;\n@%p0 bra $done;");
  text.add("add.s64 %l6, %l3, %l0;\nld.global.u8 %l7, [%l6];\nsetp.eq.s64 %p1, %l7, 0;");
  text.add("selp.b64 %l7, 1, 0, %p1;\nadd.s64 %l5, %l5, %l7;\nadd.s64 %l0, %l0, %l1;\nbra $next;\n$done:");
  text.add("setp.eq.s64 %p2, %l5, 0;\n@%p2 bra $none;\natom.global.add.u64 %l8, [%l4], %l5;\n$none:");
  return text.end();
}

}  // namespace eagle::run::cuda
