#include "server/rpc/weight.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/message.h>

#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace eagle::server {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::io::CodedInputStream;

// What memory takes beside its content: the allocator's part of each piece, the place in a list that has
// grown by doubling, a text with nothing in it, an entry among unknown fields.
constexpr std::uint64_t piece_bytes = 16;
constexpr std::uint64_t place_bytes = 40;
constexpr std::uint64_t text_bytes = 48;
constexpr std::uint64_t unknown_bytes = 96;

}  // namespace

class Shape {
public:
  enum class Kind : std::uint8_t { unknown, varint, fixed32, fixed64, text, message };
  struct Field {
    Kind kind = Kind::unknown;
    bool repeated = false;
    std::uint8_t element_bytes = 0;  // of a number
    const Shape* message = nullptr;
  };

  std::uint64_t bytes = 0;    // of one with nothing in it
  std::vector<Field> fields;  // by number, which are small in our messages

  [[nodiscard]] Field field(std::uint32_t number) const {
    return number < fields.size() ? fields[number] : Field();
  }
};

namespace {

// All shapes that were asked for, and those within them.
class Shapes {
public:
  const Shape& of(const Descriptor& type) {
    const std::lock_guard lock(mutex_);
    return add(type);
  }

private:
  const Shape& add(const Descriptor& type) {
    auto& made = shapes_[&type];
    if (made) return *made;
    made = std::make_unique<Shape>();
    Shape& shape = *made;  // before its fields: types lie in each other
    const auto* const empty = google::protobuf::MessageFactory::generated_factory()->GetPrototype(&type);
    shape.bytes = empty->SpaceUsedLong();
    for (int i = 0; i < type.field_count(); ++i) {
      const auto number = static_cast<std::size_t>(type.field(i)->number());
      if (shape.fields.size() <= number) shape.fields.resize(number + 1);
      shape.fields[number] = field_of(*type.field(i));
    }
    return shape;
  }

  Shape::Field field_of(const FieldDescriptor& field) {
    using Kind = Shape::Kind;
    const bool repeated = field.is_repeated();
    switch (field.type()) {
      case FieldDescriptor::TYPE_MESSAGE:
        return {Kind::message, repeated, 0, &add(*field.message_type())};
      case FieldDescriptor::TYPE_STRING:
      case FieldDescriptor::TYPE_BYTES:
        return {Kind::text, repeated, 0, nullptr};
      case FieldDescriptor::TYPE_DOUBLE:
      case FieldDescriptor::TYPE_FIXED64:
      case FieldDescriptor::TYPE_SFIXED64:
        return {Kind::fixed64, repeated, 8, nullptr};
      case FieldDescriptor::TYPE_FLOAT:
      case FieldDescriptor::TYPE_FIXED32:
      case FieldDescriptor::TYPE_SFIXED32:
        return {Kind::fixed32, repeated, 4, nullptr};
      case FieldDescriptor::TYPE_INT64:
      case FieldDescriptor::TYPE_UINT64:
      case FieldDescriptor::TYPE_SINT64:
        return {Kind::varint, repeated, 8, nullptr};
      case FieldDescriptor::TYPE_BOOL:
        return {Kind::varint, repeated, 1, nullptr};
      case FieldDescriptor::TYPE_INT32:
      case FieldDescriptor::TYPE_UINT32:
      case FieldDescriptor::TYPE_SINT32:
      case FieldDescriptor::TYPE_ENUM:
        return {Kind::varint, repeated, 4, nullptr};
      case FieldDescriptor::TYPE_GROUP:  // proto3 has none
        break;
    }
    return {};
  }

  std::mutex mutex_;
  std::map<const Descriptor*, std::unique_ptr<Shape>> shapes_;
};

// Goes over the bytes as the parser would, and adds up.
class Scale {
public:
  Scale(CodedInputStream& in, std::uint64_t most) : in_(in), most_(most) {}

  // To the end of the bytes, or of the group of that number; `shape` is null within unknown groups. False: it
  // is no message, or over the most.
  bool add(const Shape* shape, int depth, std::uint32_t group) {
    if (depth > message_depth) return false;
    while (!over()) {
      const std::uint32_t tag = in_.ReadTag();
      if (tag == 0) return group == 0 && in_.ConsumedEntireMessage();
      const std::uint32_t number = tag >> 3;
      if (number == 0) return false;
      if ((tag & 7) == 4) return number == group;
      if (!add_field(shape == nullptr ? Shape::Field() : shape->field(number), tag & 7, number, depth))
        return false;
    }
    return false;
  }

  void count_root(const Shape& shape) { weight_.bytes += shape.bytes; }
  [[nodiscard]] const Weight& weight() const { return weight_; }
  [[nodiscard]] bool over() const { return weight_.bytes > most_; }

private:
  using Kind = Shape::Kind;

  bool add_field(const Shape::Field& field, std::uint32_t wire, std::uint32_t number, int depth) {
    switch (wire) {
      case 0: {
        std::uint64_t value = 0;
        count_number(field, Kind::varint);
        return in_.ReadVarint64(&value);
      }
      case 1:
        count_number(field, Kind::fixed64);
        return in_.Skip(8);
      case 2:
        return add_delimited(field, depth);
      case 3:
        count(unknown_bytes);
        return add(nullptr, depth + 1, number);
      case 5:
        count_number(field, Kind::fixed32);
        return in_.Skip(4);
      default:
        return false;
    }
  }

  bool add_delimited(const Shape::Field& field, int depth) {
    int length = 0;
    if (!in_.ReadVarintSizeAsInt(&length)) return false;
    const auto bytes = static_cast<std::uint64_t>(length);
    const std::uint64_t place = field.repeated ? place_bytes : 0;
    switch (field.kind) {
      case Kind::message: {
        count(field.message->bytes + piece_bytes + place);
        const CodedInputStream::Limit outer = in_.PushLimit(length);
        const bool whole = add(field.message, depth + 1, 0);
        in_.PopLimit(outer);
        return whole;
      }
      case Kind::text:
        count(text_bytes + piece_bytes + bytes + place);
        return in_.Skip(length);
      case Kind::unknown:
        count(unknown_bytes + bytes);
        return in_.Skip(length);
      default:
        if (field.repeated) return add_packed(field, length);
        count(unknown_bytes + bytes);
        return in_.Skip(length);
    }
  }

  // A list of numbers, which are one part each.
  bool add_packed(const Shape::Field& field, int length) {
    weight_.bytes += place_bytes;
    if (field.kind != Kind::varint) {
      count_elements(field, static_cast<std::uint64_t>(length) / field.element_bytes);
      return in_.Skip(length);
    }
    const CodedInputStream::Limit outer = in_.PushLimit(length);
    bool whole = true;
    while (whole && in_.BytesUntilLimit() > 0 && !over()) {
      std::uint64_t value = 0;
      whole = in_.ReadVarint64(&value);
      count_elements(field, 1);
    }
    in_.PopLimit(outer);
    return whole && !over();
  }

  void count(std::uint64_t bytes) {
    ++weight_.parts;
    weight_.bytes += bytes;
  }
  void count_elements(const Shape::Field& field, std::uint64_t elements) {
    weight_.parts += elements;
    weight_.bytes += 2 * elements * field.element_bytes;
  }
  // One by itself: in its message there is a place for it, unless it is one of a list, or unknown.
  void count_number(const Shape::Field& field, Kind wire) {
    if (field.kind != wire) {
      count(unknown_bytes);
    } else if (field.repeated) {
      count(place_bytes);
    }
  }

  CodedInputStream& in_;
  const std::uint64_t most_;
  Weight weight_;
};

}  // namespace

const Shape& shape_of(const Descriptor& type) {
  static auto* const shapes = new Shapes;  // calls may still be under way when the program ends
  return shapes->of(type);
}

std::optional<Weight> weigh(const Shape& shape, google::protobuf::io::ZeroCopyInputStream& bytes,
                            std::uint64_t most) {
  CodedInputStream in(&bytes);
  Scale scale(in, most);
  scale.count_root(shape);
  if (!scale.add(&shape, 0, 0) && !scale.over()) return std::nullopt;
  return scale.weight();
}

}  // namespace eagle::server
