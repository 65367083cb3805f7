#include "engine/kernel/diff/plain.h"

#include <utility>
#include <vector>

#include "engine/kernel/copier.h"
#include "engine/kernel/diff/places.h"
#include "engine/kernel/diff/writer.h"

namespace eagle::kernel::diff {
namespace {

using Parts = std::vector<ValueId>;

class Splitter {
public:
  explicit Splitter(const Kernel& kernel) : kernel_(kernel), w_(kernel), parts_(kernel.value_types.size()) {}

  Kernel run() {
    w_.out.name = kernel_.name;
    w_.out.derivative_of = kernel_.derivative_of;
    w_.out.arguments = kernel_.arguments;
    for (const ValueId entry : kernel_.body.arguments) {
      const ValueId now = w_.fresh(type(entry));
      w_.out.body.arguments.push_back(now);
      take_apart(entry, now);
    }
    ops(kernel_.body);
    std::vector<ValueId> yields;
    for (const ValueId yield : kernel_.body.yields) yields.push_back(whole(yield));
    Region body = w_.end(std::move(yields));
    body.arguments = std::move(w_.out.body.arguments);
    w_.out.body = std::move(body);
    return std::move(w_.out);
  }

private:
  [[nodiscard]] const Type& type(ValueId old) const { return kernel_.value_types[old]; }
  [[nodiscard]] ValueId one(ValueId old) const { return parts_[old].front(); }

  void take_apart(ValueId old, ValueId now) {
    parts_[old].clear();
    for (std::size_t c = 0; c < static_cast<std::size_t>(type(old).components()); ++c)
      parts_[old].push_back(w_.extract(now, c));
  }
  ValueId whole(ValueId old) {
    return type(old).rank == 0 ? one(old) : w_.op(Opcode::compose, parts_[old], type(old));
  }
  // The parts of all of them, one after the other.
  [[nodiscard]] Parts flat(const std::vector<ValueId>& olds) const {
    Parts all;
    for (const ValueId old : olds) all.insert(all.end(), parts_[old].begin(), parts_[old].end());
    return all;
  }
  void set_flat(const std::vector<ValueId>& olds, const Parts& all) {
    auto next = all.begin();
    for (const ValueId old : olds) {
      parts_[old].assign(next, next + type(old).components());
      next += type(old).components();
    }
  }
  [[nodiscard]] std::vector<Type> flat_types(const std::vector<ValueId>& olds) const {
    std::vector<Type> types;
    for (const ValueId old : olds)
      types.insert(types.end(), static_cast<std::size_t>(type(old).components()), scalar_of(type(old)));
    return types;
  }

  void ops(const Region& region) {
    for (const Op& op : region.ops) {
      w_.at(op.location);
      this->op(op);
    }
  }

  void op(const Op& op) {
    if (op.code == Opcode::primitive && is_absent(op.regions[1]) && is_absent(op.regions[2]))
      return in_place(op);
    if (!op.regions.empty()) return structure(op);
    switch (op.code) {
      case Opcode::compose:
        parts_[op.results[0]] = flat(op.operands);
        return;
      case Opcode::extract:
        parts_[op.results[0]] = {parts_[op.operands[0]][op.component]};
        return;
      case Opcode::select:
        return select(op);
      case Opcode::accum_add: {
        Op made = copied(op);
        made.operands = flat(op.operands);
        made.operands.erase(made.operands.begin(), made.operands.begin() + type(op.operands[0]).components());
        made.operands.insert(made.operands.begin(), whole(op.operands[0]));
        return w_.push(std::move(made));
      }
      case Opcode::gather:
      case Opcode::random_words: {
        Op made = copied(op);
        made.operands = flat(op.operands);
        const ValueId now = w_.fresh(type(op.results[0]));
        made.results = {now};
        w_.push(std::move(made));
        return take_apart(op.results[0], now);
      }
      default:
        return elementwise(op);
    }
  }

  static Op copied(const Op& op) {
    Op made = op;
    made.regions.clear();
    made.results.clear();
    return made;
  }

  void elementwise(const Op& op) {
    const ValueId result = op.results[0];
    Parts parts;
    for (std::size_t c = 0; c < static_cast<std::size_t>(type(result).components()); ++c) {
      Op made = copied(op);
      for (ValueId& operand : made.operands) operand = parts_[operand][c];
      parts.push_back(w_.fresh(scalar_of(type(result))));
      made.results = {parts.back()};
      w_.push(std::move(made));
    }
    parts_[result] = std::move(parts);
  }

  void select(const Op& op) {
    Parts parts;
    const Parts& a = parts_[op.operands[1]];
    const Parts& b = parts_[op.operands[2]];
    for (std::size_t c = 0; c < a.size(); ++c) parts.push_back(w_.select(one(op.operands[0]), a[c], b[c]));
    parts_[op.results[0]] = std::move(parts);
  }

  void structure(const Op& op) {
    Op made = copied(op);
    made.operands = flat(op.operands);
    for (const Region& nested : op.regions) {
      w_.begin();
      Parts arguments;
      for (const Type& argument : flat_types(nested.arguments))
        arguments.push_back(w_.region_argument(argument));
      set_flat(nested.arguments, arguments);
      ops(nested);
      made.regions.push_back(w_.end(flat(nested.yields)));
    }
    for (const Type& result : flat_types(op.results)) made.results.push_back(w_.fresh(result));
    set_flat(op.results, made.results);
    w_.push(std::move(made));
  }

  void in_place(const Op& op) {
    const Region& value = op.regions[0];
    for (std::size_t i = 0; i < op.operands.size(); ++i) parts_[value.arguments[i]] = parts_[op.operands[i]];
    ops(value);
    for (std::size_t r = 0; r < op.results.size(); ++r) parts_[op.results[r]] = parts_[value.yields[r]];
  }

  const Kernel& kernel_;
  Writer w_;
  std::vector<Parts> parts_;  // by value of the kernel
};

}  // namespace

Kernel in_scalars(const Kernel& kernel) { return Splitter(kernel).run(); }

}  // namespace eagle::kernel::diff
