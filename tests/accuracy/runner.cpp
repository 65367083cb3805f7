#include "tests/accuracy/runner.h"

#include <array>
#include <bit>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "engine/kernel/builder.h"
#include "engine/kernel/float_environment.h"
#include "engine/kernel/scalar_ops.h"
#include "engine/kernel/typing.h"

namespace eagle::accuracy {
namespace {

using kernel::KernelBuilder;
using kernel::Scalar;

codegen::Compiler& compiler() {
  static codegen::Compiler made;
  return made;
}

template <typename T>
T value_of(StatusOr<T> result) {
  if (!result.ok()) throw std::runtime_error(result.status().to_string());
  return std::move(result).value();
}

std::uint64_t bits_of(Scalar scalar, double value) {
  if (scalar == Scalar::f64) return std::bit_cast<std::uint64_t>(value);
  return std::bit_cast<std::uint32_t>(static_cast<float>(value));
}
double number_of(Scalar scalar, std::uint64_t bits) {
  if (scalar == Scalar::boolean) return static_cast<double>(bits);
  if (scalar == Scalar::f64) return std::bit_cast<double>(bits);
  return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
}

// The last plane is the result.
void call(const codegen::Code& code, std::span<std::byte* const> planes, std::size_t samples) {
  const std::vector<std::int64_t> strides(planes.size(), 0), lengths(planes.size(), 1);
  const std::vector<std::uint64_t> params(planes.size(), 0);
  codegen::KernelCall call;
  call.planes = planes.data();
  call.component_strides = strides.data();
  call.params = params.data();
  call.lengths = lengths.data();
  call.end = static_cast<std::int64_t>(samples);
  code.function()(&call);
}

template <typename T, typename Result>
std::vector<double> run(const codegen::Code& code, int count, const std::vector<Operands>& operands) {
  std::vector<std::vector<T>> planes(static_cast<std::size_t>(count));
  for (std::size_t k = 0; k < planes.size(); ++k) {
    for (const Operands& each : operands) planes[k].push_back(static_cast<T>(each[k]));
  }
  const auto results = std::make_unique<Result[]>(operands.size() + 1);
  std::vector<std::byte*> addresses;
  for (auto& plane : planes) addresses.push_back(reinterpret_cast<std::byte*>(plane.data()));
  addresses.push_back(reinterpret_cast<std::byte*>(results.get()));
  call(code, addresses, operands.size());
  return {results.get(), results.get() + operands.size()};
}

}  // namespace

Runner::Runner(kernel::Opcode code, Scalar scalar, const char* cpu) : code_(code), scalar_(scalar) {
  const kernel::Rule& rule = kernel::rule_of(code);
  operands_ = rule.operands;
  question_ = rule.typing == kernel::Typing::question;
  KernelBuilder b(std::string(rule.name), scalar);
  std::vector<KernelBuilder::Value> values;
  for (int k = 0; k < operands_; ++k) values.push_back(b.scalar(std::string(1, static_cast<char>('a' + k))));
  b.output("result", b.op(code, values));
  compiled_ = value_of(compiler().compile(value_of(b.finish()), {cpu})).code;
}

std::vector<double> Runner::compiled(const std::vector<Operands>& operands) const {
  if (question_)
    return scalar_ == Scalar::f64 ? run<double, bool>(*compiled_, operands_, operands)
                                  : run<float, bool>(*compiled_, operands_, operands);
  return scalar_ == Scalar::f64 ? run<double, double>(*compiled_, operands_, operands)
                                : run<float, float>(*compiled_, operands_, operands);
}

void Runner::compiled(std::span<const float> operands, std::span<float> results) const {
  const std::array<std::byte*, 2> planes = {
      reinterpret_cast<std::byte*>(const_cast<float*>(operands.data())),  // NOLINT: read only
      reinterpret_cast<std::byte*>(results.data())};
  call(*compiled_, planes, operands.size());
}

std::vector<double> Runner::interpreted(const std::vector<Operands>& operands) const {
  const kernel::FloatEnvironment environment;
  const Scalar result = question_ ? Scalar::boolean : scalar_;
  std::vector<double> results;
  results.reserve(operands.size());
  for (const Operands& each : operands) {
    const std::uint64_t bits = kernel::apply(code_, scalar_, result, bits_of(scalar_, each[0]),
                                             bits_of(scalar_, each[1]), bits_of(scalar_, each[2]));
    results.push_back(number_of(result, bits));
  }
  return results;
}

}  // namespace eagle::accuracy
