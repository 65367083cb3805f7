#include "engine/kernel/wire.h"

#include <openssl/sha.h>

#include <array>
#include <bit>
#include <climits>
#include <cstdint>
#include <optional>
#include <string_view>

#include "eagle/v1/kernel.pb.h"
#include "engine/base/hex.h"
#include "engine/kernel/typing.h"
#include "engine/kernel/verify.h"

namespace eagle::kernel {
namespace {

void write_type(const Type& type, v1::Type& message) {
  message.set_scalar(static_cast<v1::ScalarType>(type.scalar));
  for (std::size_t i = 0; i < type.rank; ++i) message.add_extents(type.extents[i]);
}

void write_constant(Scalar scalar, std::uint64_t bits, v1::Constant& message) {
  const auto low = static_cast<std::uint32_t>(bits);
  switch (scalar) {
    case Scalar::f64:
      message.set_f64(std::bit_cast<double>(bits));
      break;
    case Scalar::f32:
      message.set_f32(std::bit_cast<float>(low));
      break;
    case Scalar::i64:
      message.set_i64(static_cast<std::int64_t>(bits));
      break;
    case Scalar::i32:
      message.set_i32(static_cast<std::int32_t>(low));
      break;
    case Scalar::boolean:
      message.set_boolean(bits != 0);
      break;
  }
}

void write_location(const Location& location, v1::Location& message) {
  message.set_file(location.file);
  message.set_line(location.line);
  message.set_column(location.column);
}

void write_dispatch(const Dispatch& dispatch, v1::Dispatch& message) {
  message.set_name(dispatch.name);
  message.set_policy(static_cast<v1::DispatchPolicy>(dispatch.policy));
}

// Ops and yields. Only nested regions state their arguments; the body's are the kernel's.
void write_region(const Kernel& kernel, const Region& region, v1::Region& message) {
  for (const Op& op : region.ops) {
    v1::Op& out = *message.add_ops();
    out.set_code(static_cast<v1::Opcode>(op.code));
    out.mutable_operands()->Add(op.operands.begin(), op.operands.end());
    if (rule_of(op.code).states_type()) {
      const Type& type = kernel.value_types[op.results[0]];
      write_type(type, *out.mutable_type());
      if (op.code == Opcode::constant) write_constant(type.scalar, op.bits, *out.mutable_constant());
    }
    for (const Region& nested : op.regions) {
      v1::Region& region_out = *out.add_regions();
      for (const ValueId carried : nested.arguments)
        write_type(kernel.value_types[carried], *region_out.add_arguments());
      write_region(kernel, nested, region_out);
    }
    out.set_argument(op.argument);
    out.set_max_trips(op.max_trips);
    out.set_component(op.component);
    if (op.dispatch) write_dispatch(*op.dispatch, *out.mutable_dispatch());
    if (op.location != Location{}) write_location(op.location, *out.mutable_location());
  }
  message.mutable_yields()->Add(region.yields.begin(), region.yields.end());
}

// The bytes that are hashed: little-endian numbers of fixed width, every sequence after its length, so that
// two programs give the same bytes only if they are the same. Not the message's bytes: protobuf does not
// promise those across versions.
class Encoder {
public:
  void number(std::uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8) bytes_ += static_cast<char>(value >> shift & 0xff);
  }
  void type(const Type& type) {
    number(static_cast<std::uint64_t>(type.scalar));
    number(type.rank);
    number(type.extents[0]);
    number(type.extents[1]);
  }
  void values(const std::vector<ValueId>& values) {
    number(values.size());
    for (const ValueId value : values) number(value);
  }
  void region(const Kernel& kernel, const Region& region) {
    values(region.arguments);
    number(region.ops.size());
    for (const Op& op : region.ops) {
      number(static_cast<std::uint64_t>(op.code));
      values(op.operands);
      number(op.bits);
      number(op.argument);
      number(op.max_trips);
      number(op.component);
      dispatch(op.dispatch);
      number(op.regions.size());
      for (const Region& nested : op.regions) this->region(kernel, nested);
      values(op.results);
      for (const ValueId result : op.results) type(kernel.value_types[result]);
    }
    values(region.yields);
  }
  // It changes no bit of a result, but it may change the code.
  void dispatch(const std::optional<Dispatch>& dispatch) {
    number(dispatch ? 1 : 0);
    if (!dispatch) return;
    text(dispatch->name);
    number(static_cast<std::uint64_t>(dispatch->policy));
  }
  void text(std::string_view text) {
    number(text.size());
    bytes_ += text;
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

private:
  std::string bytes_;
};

std::string sha256_hex(std::string_view bytes) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest.data());
  return to_hex(digest);
}

}  // namespace

void to_message(const Kernel& kernel, v1::Kernel& message) {
  message.Clear();
  message.set_name(kernel.name);
  message.set_real(static_cast<v1::ScalarType>(kernel.real));
  for (const Argument& argument : kernel.arguments) {
    v1::Argument& out = *message.add_arguments();
    out.set_name(argument.name);
    out.set_role(static_cast<v1::Role>(argument.role));
    if (argument.role == Role::reduce) out.set_reduce(static_cast<v1::ReduceOp>(argument.reduce));
    write_type(argument.type, *out.mutable_type());
    for (const Axis& axis : argument.axes) {
      v1::Axis& axis_out = *out.add_axes();
      axis_out.set_name(axis.name);
      axis_out.set_extent(axis.extent);
    }
  }
  write_region(kernel, kernel.body, *message.mutable_body());
  for (const std::string& file : kernel.source_files) message.add_source_files(file);
  message.set_derivative_of(kernel.derivative_of);
}

std::string to_bytes(const Kernel& kernel) {
  v1::Kernel message;
  to_message(kernel, message);
  return message.SerializeAsString();
}

StatusOr<Kernel> from_bytes(std::string_view bytes) {
  v1::Kernel message;
  if (bytes.size() > INT_MAX || !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Status(Reason::bad_message, "expected the bytes of a kernel, found " +
                                           std::to_string(bytes.size()) + " bytes that are none");
  }
  return verify(message);
}

std::string content_hash(const Kernel& kernel) {
  Encoder encoder;
  encoder.text("eagle kernel 2");
  encoder.number(static_cast<std::uint64_t>(kernel.real));
  encoder.number(kernel.arguments.size());
  for (const Argument& argument : kernel.arguments) {
    encoder.number(static_cast<std::uint64_t>(argument.role));
    encoder.type(argument.type);
    if (argument.role == Role::reduce) encoder.number(static_cast<std::uint64_t>(argument.reduce));
    encoder.number(argument.axes.size());
    for (const Axis& axis : argument.axes) encoder.number(axis.extent);
  }
  encoder.region(kernel, kernel.body);
  return sha256_hex(encoder.bytes());
}

}  // namespace eagle::kernel
