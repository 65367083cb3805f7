#include "engine/kernel/algebra.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace eagle::kernel::algebra {
namespace {

// ---- what the operands have to be ----

Value refuse(KernelBuilder& b, std::string_view who, std::string_view expected, const std::string& found) {
  return b.refuse(std::string(who) + ": expected " + std::string(expected) + ", found " + found);
}

bool is_vector(const Value& v) { return v.type.rank == 1; }
bool is_vector_of(const Value& v, int length) { return is_vector(v) && v.type.extents[0] == length; }
bool is_quaternion(const Value& q) { return is_vector_of(q, 4) && is_real(q.type.scalar); }
bool has_components(const Value& v) { return v.type.rank != 0 && v.type.scalar != Scalar::boolean; }

std::string both(const Value& a, const Value& b) { return to_string(a.type) + " and " + to_string(b.type); }

// ---- components ----

// A value taken apart; each component is extracted once.
std::vector<Value> components(KernelBuilder& b, const Value& v) {
  std::vector<Value> all;
  for (int i = 0; i < v.type.components(); ++i) all.push_back(b.extract(v, static_cast<std::uint32_t>(i)));
  return all;
}

Type vector_type(Scalar scalar, std::size_t length) {
  return Type{scalar, 1, {static_cast<std::uint16_t>(length), 1}};
}

Type matrix_type(Scalar scalar, int rows, int columns) {
  return Type{scalar, 2, {static_cast<std::uint16_t>(rows), static_cast<std::uint16_t>(columns)}};
}

Value vector_of(KernelBuilder& b, const std::vector<Value>& all) {
  return b.compose(all, vector_type(all[0].type.scalar, all.size()));
}

// Signed products, in the order in which they are added. The first one is negated where its sign is -1.
struct Term {
  int sign;
  Value left;
  Value right;
};

Value sum_of(KernelBuilder& b, const std::vector<Term>& terms) {
  Value total;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const Value product = b.mul(terms[i].left, terms[i].right);
    if (i == 0) {
      total = terms[i].sign < 0 ? b.neg(product) : product;
    } else {
      total = terms[i].sign < 0 ? b.sub(total, product) : b.add(total, product);
    }
  }
  return total;
}

Value dot_of(KernelBuilder& b, const std::vector<Value>& u, const std::vector<Value>& v) {
  std::vector<Term> terms;
  for (std::size_t i = 0; i < u.size(); ++i) terms.push_back({1, u[i], v[i]});
  return sum_of(b, terms);
}

}  // namespace

Value splat(KernelBuilder& b, Value s, Type type) {
  if (!b.status().ok()) return {};
  if (s.type.rank != 0) return refuse(b, "splat", "a scalar (no extents)", to_string(s.type));
  if (!b.accepts(type, "splat")) return {};
  return b.compose(std::vector<Value>(static_cast<std::size_t>(type.components()), s), type);
}

Value scale(KernelBuilder& b, Value s, Value v) {
  if (!b.status().ok()) return {};
  if (!has_components(v)) return refuse(b, "scale", "a vector or matrix of numbers", to_string(v.type));
  if (s.type != Type{v.type.scalar}) {
    return refuse(b, "scale", std::string(name_of(v.type.scalar)) + " (to scale a " + to_string(v.type) + ")",
                  to_string(s.type));
  }
  std::vector<Value> scaled;
  for (const Value& component : components(b, v)) scaled.push_back(b.mul(s, component));
  return b.compose(scaled, v.type);
}

Value sum(KernelBuilder& b, Value v) {
  if (!b.status().ok()) return {};
  if (!has_components(v)) return refuse(b, "sum", "a vector or matrix of numbers", to_string(v.type));
  const std::vector<Value> all = components(b, v);
  Value total = all[0];
  for (std::size_t i = 1; i < all.size(); ++i) total = b.add(total, all[i]);
  return total;
}

Value dot(KernelBuilder& b, Value u, Value v) {
  if (!b.status().ok()) return {};
  if (!is_vector(u) || !has_components(u) || u.type != v.type)
    return refuse(b, "dot", "two equal vectors of numbers", both(u, v));
  return dot_of(b, components(b, u), components(b, v));
}

Value norm(KernelBuilder& b, Value v) {
  if (!b.status().ok()) return {};
  if (!is_vector(v) || !is_real(v.type.scalar))
    return refuse(b, "norm", "a vector of reals", to_string(v.type));
  const std::vector<Value> all = components(b, v);
  return b.op(Opcode::sqrt, {dot_of(b, all, all)});
}

Value cross(KernelBuilder& b, Value u, Value v) {
  if (!b.status().ok()) return {};
  if (!is_vector_of(u, 3) || !has_components(u) || u.type != v.type)
    return refuse(b, "cross", "two equal vectors of three numbers", both(u, v));
  const std::vector<Value> p = components(b, u);
  const std::vector<Value> q = components(b, v);
  const auto minor = [&](std::size_t i, std::size_t j) {
    return sum_of(b, {{1, p[i], q[j]}, {-1, p[j], q[i]}});
  };
  const Value x = minor(1, 2);
  const Value y = minor(2, 0);
  const Value z = minor(0, 1);
  return vector_of(b, {x, y, z});
}

Value matmul(KernelBuilder& b, Value left, Value right) {
  if (!b.status().ok()) return {};
  const Type& l = left.type;
  const Type& r = right.type;
  const int inner = l.rank == 2 ? l.extents[1] : l.extents[0];
  if (!has_components(left) || !has_components(right) || l.scalar != r.scalar || inner != r.extents[0]) {
    return refuse(b, "matmul",
                  "vectors or matrices of the same numbers, of which the left one's last extent "
                  "is the right one's first",
                  both(left, right));
  }
  const int rows = l.rank == 2 ? l.extents[0] : 1;
  const int columns = r.rank == 2 ? r.extents[1] : 1;
  const std::vector<Value> p = components(b, left);
  const std::vector<Value> q = components(b, right);
  std::vector<Value> products;
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      std::vector<Term> terms;
      for (int k = 0; k < inner; ++k) {
        terms.push_back(
            {1, p[static_cast<std::size_t>(i * inner + k)], q[static_cast<std::size_t>(k * columns + j)]});
      }
      products.push_back(sum_of(b, terms));
    }
  }
  if (l.rank == 1 && r.rank == 1) return products[0];
  if (l.rank == 1 || r.rank == 1) return b.compose(products, vector_type(l.scalar, products.size()));
  return b.compose(products, matrix_type(l.scalar, rows, columns));
}

Value transpose(KernelBuilder& b, Value m) {
  if (!b.status().ok()) return {};
  if (m.type.rank != 2) return refuse(b, "transpose", "a matrix", to_string(m.type));
  const int rows = m.type.extents[0];
  const int columns = m.type.extents[1];
  const std::vector<Value> all = components(b, m);
  std::vector<Value> turned;
  for (int j = 0; j < columns; ++j) {
    for (int i = 0; i < rows; ++i) turned.push_back(all[static_cast<std::size_t>(i * columns + j)]);
  }
  return b.compose(turned, matrix_type(m.type.scalar, columns, rows));
}

Value outer(KernelBuilder& b, Value u, Value v) {
  if (!b.status().ok()) return {};
  const bool numbers = has_components(u) && u.type.scalar == v.type.scalar;
  if (!is_vector(u) || !is_vector(v) || !numbers)
    return refuse(b, "outer", "two vectors of the same numbers", both(u, v));
  const std::vector<Value> p = components(b, u);
  const std::vector<Value> q = components(b, v);
  std::vector<Value> products;
  for (const Value& left : p) {
    for (const Value& right : q) products.push_back(b.mul(left, right));
  }
  return b.compose(products, matrix_type(u.type.scalar, u.type.extents[0], v.type.extents[0]));
}

Value quaternion_multiply(KernelBuilder& b, Value p, Value q) {
  if (!b.status().ok()) return {};
  if (!is_quaternion(p) || p.type != q.type) {
    return refuse(b, "quaternion_multiply", "two quaternions (equal vectors of four reals)", both(p, q));
  }
  const std::vector<Value> l = components(b, p);
  const std::vector<Value> r = components(b, q);
  const Value w = sum_of(b, {{1, l[0], r[0]}, {-1, l[1], r[1]}, {-1, l[2], r[2]}, {-1, l[3], r[3]}});
  const Value x = sum_of(b, {{1, l[0], r[1]}, {1, l[1], r[0]}, {1, l[2], r[3]}, {-1, l[3], r[2]}});
  const Value y = sum_of(b, {{1, l[0], r[2]}, {-1, l[1], r[3]}, {1, l[2], r[0]}, {1, l[3], r[1]}});
  const Value z = sum_of(b, {{1, l[0], r[3]}, {1, l[1], r[2]}, {-1, l[2], r[1]}, {1, l[3], r[0]}});
  return vector_of(b, {w, x, y, z});
}

Value quaternion_conjugate(KernelBuilder& b, Value q) {
  if (!b.status().ok()) return {};
  if (!is_quaternion(q)) {
    return refuse(b, "quaternion_conjugate", "a quaternion (a vector of four reals)", to_string(q.type));
  }
  std::vector<Value> all = components(b, q);
  for (std::size_t i = 1; i < 4; ++i) all[i] = b.neg(all[i]);
  return vector_of(b, all);
}

Value quaternion_norm(KernelBuilder& b, Value q) {
  if (!b.status().ok()) return {};
  if (!is_quaternion(q)) {
    return refuse(b, "quaternion_norm", "a quaternion (a vector of four reals)", to_string(q.type));
  }
  return norm(b, q);
}

Value quaternion_normalise(KernelBuilder& b, Value q) {
  if (!b.status().ok()) return {};
  if (!is_quaternion(q)) {
    return refuse(b, "quaternion_normalise", "a quaternion (a vector of four reals)", to_string(q.type));
  }
  std::vector<Value> all = components(b, q);
  const Value length = b.op(Opcode::sqrt, {dot_of(b, all, all)});
  for (Value& component : all) component = b.div(component, length);
  return vector_of(b, all);
}

Value quaternion_rotate(KernelBuilder& b, Value q, Value v) {
  if (!b.status().ok()) return {};
  if (!is_quaternion(q) || v.type != Type{q.type.scalar, 1, {3, 1}}) {
    return refuse(b, "quaternion_rotate",
                  "a quaternion (a vector of four reals) and a vector of three such reals", both(q, v));
  }
  const std::vector<Value> r = components(b, q);
  const std::vector<Value> s = components(b, v);
  const Value w = r[0], x = r[1], y = r[2], z = r[3];
  const Value tw = sum_of(b, {{-1, x, s[0]}, {-1, y, s[1]}, {-1, z, s[2]}});
  const Value t0 = sum_of(b, {{1, w, s[0]}, {1, y, s[2]}, {-1, z, s[1]}});
  const Value t1 = sum_of(b, {{1, w, s[1]}, {-1, x, s[2]}, {1, z, s[0]}});
  const Value t2 = sum_of(b, {{1, w, s[2]}, {1, x, s[1]}, {-1, y, s[0]}});
  const Value r0 = sum_of(b, {{1, t0, w}, {-1, tw, x}, {-1, t1, z}, {1, t2, y}});
  const Value r1 = sum_of(b, {{1, t1, w}, {-1, tw, y}, {1, t0, z}, {-1, t2, x}});
  const Value r2 = sum_of(b, {{1, t2, w}, {-1, tw, z}, {-1, t0, y}, {1, t1, x}});
  return vector_of(b, {r0, r1, r2});
}

}  // namespace eagle::kernel::algebra
