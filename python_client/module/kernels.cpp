// KernelBuilder and Kernel, for the front end.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings.h"
#include "eagle/client/kernel_builder.h"
#include "engine/codegen/ptx.h"
#include "engine/kernel/algebra.h"
#include "engine/kernel/ir.h"
#include "engine/kernel/random.h"
#include "engine/kernel/text.h"
#include "engine/kernel/typing.h"
#include "engine/kernel/wire.h"
#include "errors.h"
#include "gil.h"

namespace eagle::python {
namespace {

using kernel::Kernel;
using kernel::Scalar;
using kernel::Type;
using Value = KernelBuilder::Value;

Scalar scalar_named(std::string_view name) {
  for (const Scalar scalar : {Scalar::f64, Scalar::f32, Scalar::i64, Scalar::i32, Scalar::boolean}) {
    if (kernel::name_of(scalar) == name) return scalar;
  }
  throw StatusError({Reason::bad_value, "KernelBuilder: unknown scalar type '" + std::string(name) + "'"});
}

// Extents that no type can have become 0, which the builder refuses by name.
Type type_of(std::string_view scalar, const std::vector<int>& extents) {
  if (extents.size() > 2)
    throw StatusError({Reason::bad_value, "KernelBuilder: a type has at most two extents"});
  Type type{scalar_named(scalar), static_cast<std::uint8_t>(extents.size()), {1, 1}};
  for (std::size_t i = 0; i < extents.size(); ++i)
    type.extents[i] = extents[i] > 0 && extents[i] <= 0xffff ? static_cast<std::uint16_t>(extents[i]) : 0;
  return type;
}

Value plain_op(KernelBuilder& builder, std::string_view code, const std::vector<Value>& operands) {
  const kernel::Rule* rule = kernel::find_rule(code);
  if (rule == nullptr)
    throw StatusError({Reason::bad_value, "KernelBuilder.op: unknown opcode '" + std::string(code) + "'"});
  return builder.op(rule->code, operands);
}

Value read_argument(KernelBuilder& builder, std::string name, std::string_view scalar,
                    const std::vector<int>& extents) {
  if (scalar == "i64") return builder.index(std::move(name));
  if (extents.empty()) return builder.scalar(std::move(name));
  if (extents.size() == 1) return builder.vector(std::move(name), extents[0]);
  return builder.matrix(std::move(name), extents[0], extents[1]);
}

// What of engine/kernel/algebra.h takes whole vectors, by the names of eagle.math.
struct Algebra {
  std::string_view name;
  Value (*one)(KernelBuilder&, Value) = nullptr;
  Value (*two)(KernelBuilder&, Value, Value) = nullptr;
};
constexpr std::array algebra_table = {
    Algebra{"sum", kernel::algebra::sum},
    Algebra{"norm", kernel::algebra::norm},
    Algebra{"transpose", kernel::algebra::transpose},
    Algebra{"quat_conjugate", kernel::algebra::quaternion_conjugate},
    Algebra{"quat_normalize", kernel::algebra::quaternion_normalise},
    Algebra{"scale", nullptr, kernel::algebra::scale},
    Algebra{"dot", nullptr, kernel::algebra::dot},
    Algebra{"cross", nullptr, kernel::algebra::cross},
    Algebra{"matmul", nullptr, kernel::algebra::matmul},
    Algebra{"outer", nullptr, kernel::algebra::outer},
    Algebra{"quat_multiply", nullptr, kernel::algebra::quaternion_multiply},
    Algebra{"quat_rotate", nullptr, kernel::algebra::quaternion_rotate},
};

Value algebra(KernelBuilder& builder, std::string_view name, const std::vector<Value>& operands) {
  for (const Algebra& known : algebra_table) {
    if (known.name != name) continue;
    if (known.one != nullptr && operands.size() == 1) return known.one(builder, operands[0]);
    if (known.two != nullptr && operands.size() == 2) return known.two(builder, operands[0], operands[1]);
    throw StatusError({Reason::bad_value, "KernelBuilder.algebra: '" + std::string(name) + "' of " +
                                              std::to_string(operands.size()) + " operands"});
  }
  throw StatusError({Reason::bad_value, "KernelBuilder.algebra: unknown '" + std::string(name) + "'"});
}

kernel::DispatchPolicy policy_named(std::string_view name) {
  using kernel::DispatchPolicy;
  for (const DispatchPolicy policy : {DispatchPolicy::automatic, DispatchPolicy::switch_,
                                      DispatchPolicy::segmented, DispatchPolicy::predicated}) {
    if (kernel::name_of(policy) == name) return policy;
  }
  throw StatusError({Reason::bad_value, "KernelBuilder: unknown policy '" + std::string(name) + "'"});
}

using NamedAxes = std::vector<std::pair<std::string, std::uint32_t>>;

std::vector<kernel::Axis> axes_of(const NamedAxes& axes) {
  std::vector<kernel::Axis> named;
  named.reserve(axes.size());
  for (const auto& [axis, extent] : axes) named.push_back({axis, extent});
  return named;
}

kernel::ReduceOp reduction_named(std::string_view name) {
  using kernel::ReduceOp;
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::max, ReduceOp::min, ReduceOp::all, ReduceOp::any}) {
    if (kernel::name_of(op) == name) return op;
  }
  throw StatusError({Reason::bad_value, "KernelBuilder: unknown reduction '" + std::string(name) + "'"});
}

nb::list argument_rows(const Kernel& kernel) {
  nb::list rows;
  for (const kernel::Argument& argument : kernel.arguments) {
    nb::list extents;
    for (std::uint8_t i = 0; i < argument.type.rank; ++i) extents.append(argument.type.extents[i]);
    const std::string_view role = name_of(argument.role);
    const std::string_view scalar = kernel::name_of(argument.type.scalar);
    rows.append(nb::make_tuple(argument.name, nb::str(role.data(), role.size()),
                               nb::str(scalar.data(), scalar.size()), nb::tuple(extents)));
  }
  return rows;
}

// What a reduction of no values is, as a number of its type. BAD_VALUE for an argument that is no reduction.
nb::object neutral_element(const Kernel& kernel, std::string_view name) {
  for (const kernel::Argument& argument : kernel.arguments) {
    if (argument.name != name || argument.role != kernel::Role::reduce) continue;
    const std::uint64_t bits = kernel::neutral_bits(argument.reduce, argument.type.scalar);
    switch (argument.type.scalar) {
      case kernel::Scalar::f64:
        return nb::float_(std::bit_cast<double>(bits));
      case kernel::Scalar::f32:
        return nb::float_(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
      case kernel::Scalar::i64:
        return nb::int_(static_cast<std::int64_t>(bits));
      case kernel::Scalar::i32:
        return nb::int_(static_cast<std::int32_t>(bits));
      case kernel::Scalar::boolean:
        return nb::bool_(bits != 0);
    }
  }
  throw StatusError({Reason::bad_value, "neutral_element: kernel '" + kernel.name + "' has no reduction '" +
                                            std::string(name) + "'"});
}

// The kernel as bytes, some of its arguments under other names: in a model, arrays go by those.
nb::bytes bytes_of(const Kernel& kernel, const std::vector<std::pair<std::string, std::string>>& renamed) {
  Kernel sent = kernel;
  for (const auto& [from, to] : renamed) {
    for (std::size_t a = 0; a < kernel.arguments.size(); ++a)
      if (kernel.arguments[a].name == from) sent.arguments[a].name = to;
  }
  const std::string bytes = kernel::to_bytes(sent);
  return nb::bytes(bytes.data(), bytes.size());
}

}  // namespace

void bind_kernels(nb::module_& m) {
  nb::class_<Value>(m, "Value");
  nb::class_<Kernel>(m, "Kernel")
      .def_prop_ro("name", [](const Kernel& kernel) { return kernel.name; })
      .def_prop_ro("arguments", argument_rows)
      .def("neutral_element", neutral_element)
      .def_prop_ro("text", [](const Kernel& kernel) { return kernel::to_text(kernel); })
      .def("to_bytes", bytes_of, nb::arg("renamed") = std::vector<std::pair<std::string, std::string>>{})
      .def_prop_ro("derivative_of", [](const Kernel& kernel) { return kernel.derivative_of; })
      .def("ptx",
           [](const Kernel& kernel, std::string_view arch) {
             return take([&] {
               const Released released;
               codegen::Compiler compiler;
               return codegen::ptx_of(compiler, kernel, arch);
             }());
           })
      .def_prop_ro("hash", [](const Kernel& kernel) { return kernel::content_hash(kernel); });
  m.def("kernel_from_bytes", [](const nb::bytes& bytes) {
    return std::make_shared<Kernel>(take(kernel::from_bytes({bytes.c_str(), bytes.size()})));
  });

  nb::class_<KernelBuilder>(m, "KernelBuilder")
      .def("__init__",
           [](KernelBuilder* self, std::string name, std::string_view real) {
             new (self) KernelBuilder(std::move(name), scalar_named(real));
           })
      .def("source_file", &KernelBuilder::source_file)
      .def("at",
           [](KernelBuilder& self, std::uint32_t file, std::uint32_t line, std::uint32_t column) {
             self.at({file, line, column});
           })
      .def("read", read_argument)
      .def("param",
           [](KernelBuilder& self, std::string name, std::string_view scalar) {
             return scalar == "i64" ? self.integer_param(std::move(name)) : self.param(std::move(name));
           })
      .def("state",
           [](KernelBuilder& self, std::string name, std::string_view scalar,
              const std::vector<int>& extents) {
             return self.state(std::move(name), type_of(scalar, extents));
           })
      .def("terminated", &KernelBuilder::terminated)
      .def("declare_output",
           [](KernelBuilder& self, std::string name, std::string_view scalar,
              const std::vector<int>& extents) {
             self.declare_output(std::move(name), type_of(scalar, extents));
           })
      .def("commit", &KernelBuilder::commit)
      .def("real", &KernelBuilder::real)
      .def("integer", &KernelBuilder::integer)
      .def("boolean", &KernelBuilder::boolean)
      .def("op", plain_op)
      .def("convert", [](KernelBuilder& self, Value value,
                         std::string_view to) { return self.convert(value, scalar_named(to)); })
      .def(
          "table",
          [](KernelBuilder& self, std::string name, std::string_view scalar, const std::vector<int>& extents,
             const NamedAxes& axes) { self.table(std::move(name), type_of(scalar, extents), axes_of(axes)); })
      .def("gather", [](KernelBuilder& self, std::string_view table,
                        const std::vector<Value>& indices) { return self.gather(table, indices); })
      .def("accumulator",
           [](KernelBuilder& self, std::string name, std::string_view scalar, const std::vector<int>& extents,
              const NamedAxes& axes) {
             self.accumulator(std::move(name), type_of(scalar, extents), axes_of(axes));
           })
      .def("accum_add",
           [](KernelBuilder& self, std::string_view accumulator, Value value,
              const std::vector<Value>& indices) { self.accum_add(accumulator, value, indices); })
      .def("declare_reduction",
           [](KernelBuilder& self, std::string name, std::string_view scalar, std::string_view op) {
             self.declare_reduction(std::move(name), type_of(scalar, {}), reduction_named(op));
           })
      .def("extract", &KernelBuilder::extract)
      .def("compose",
           [](KernelBuilder& self, const std::vector<Value>& components, std::string_view scalar,
              const std::vector<int>& extents) { return self.compose(components, type_of(scalar, extents)); })
      .def("splat",
           [](KernelBuilder& self, Value value, const std::vector<int>& extents) {
             return kernel::algebra::splat(self, value, type_of(kernel::name_of(value.type.scalar), extents));
           })
      .def("algebra", algebra)
      .def("random",
           [](KernelBuilder& self, std::string_view name, const std::vector<Value>& operands) {
             return kernel::random::call(self, name, operands);
           })
      .def("begin_while", &KernelBuilder::begin_while)
      .def("while_condition", &KernelBuilder::while_condition)
      .def("end_while", &KernelBuilder::end_while)
      .def("begin_switch",
           [](KernelBuilder& self, Value selector, std::string name, std::string_view policy) {
             self.begin_switch(selector, kernel::Dispatch{std::move(name), policy_named(policy)});
           })
      .def("next_case", &KernelBuilder::next_case)
      .def("end_switch", &KernelBuilder::end_switch)
      .def("begin_if", &KernelBuilder::begin_if)
      .def("otherwise", &KernelBuilder::otherwise)
      .def("end_if", &KernelBuilder::end_if)
      .def("begin_primitive", &KernelBuilder::begin_primitive)
      .def("primitive_jvp", &KernelBuilder::primitive_jvp)
      .def("primitive_vjp", &KernelBuilder::primitive_vjp)
      .def("end_primitive", &KernelBuilder::end_primitive)
      .def("finish", [](KernelBuilder& self) { return std::make_shared<Kernel>(take(self.finish())); });
}

}  // namespace eagle::python
