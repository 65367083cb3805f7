// Vectors, matrices and quaternions on builder values, spelled out in operations on their components, so that
// the verifier, every backend and the derivatives see those only.
//
// Components count from 0 and matrices are row-major. A quaternion is a vector of four, (w, x, y, z). Sums
// add in index order, starting from the first term: a + b + c is (a + b) + c. Nothing is fused or reordered.
// Element-wise work on whole values (v + w, -v) is a plain operation of the builder. Operands of the wrong
// type are refused through the builder's sticky status.
#pragma once

#include "engine/kernel/builder.h"
#include "engine/kernel/ir.h"

namespace eagle::kernel::algebra {

using Value = KernelBuilder::Value;

// Every component of a value of that type, which is a vector or matrix of a's scalar type: s.
Value splat(KernelBuilder& b, Value s, Type type);
// s v, for a vector or matrix v: s v_i.
Value scale(KernelBuilder& b, Value s, Value v);
// The sum of a vector's or matrix's components: v_0 + v_1 + ...
Value sum(KernelBuilder& b, Value v);
// u . v = u_0 v_0 + u_1 v_1 + ..., for vectors of one length.
Value dot(KernelBuilder& b, Value u, Value v);
// |v| = sqrt(v . v), for a vector of reals.
Value norm(KernelBuilder& b, Value v);
// u x v = (u_1 v_2 - u_2 v_1, u_2 v_0 - u_0 v_2, u_0 v_1 - u_1 v_0).
Value cross(KernelBuilder& b, Value u, Value v);

// a b, where the last extent of a is the first of b: (a b)_ij = a_i0 b_0j + a_i1 b_1j + ...
// A vector is a row on the left and a column on the right, so two vectors give their dot product.
Value matmul(KernelBuilder& b, Value left, Value right);
// m^T: (m^T)_ij = m_ji.
Value transpose(KernelBuilder& b, Value m);
// u v^T: (u v^T)_ij = u_i v_j.
Value outer(KernelBuilder& b, Value u, Value v);

// The Hamilton product p q, each component from left to right as written:
//   w = pw qw - px qx - py qy - pz qz
//   x = pw qx + px qw + py qz - pz qy
//   y = pw qy - px qz + py qw + pz qx
//   z = pw qz + px qy - py qx + pz qw
Value quaternion_multiply(KernelBuilder& b, Value p, Value q);
// q* = (w, -x, -y, -z).
Value quaternion_conjugate(KernelBuilder& b, Value q);
// |q| = sqrt(w w + x x + y y + z z).
Value quaternion_norm(KernelBuilder& b, Value q);
// q / |q|, component by component; NaN for the zero quaternion.
Value quaternion_normalise(KernelBuilder& b, Value q);
// The vector part of q (0, v) q*, which is v turned by q where |q| = 1. The products with 0 are left out:
//   t = q (0, v):  tw = -(x v0) - y v1 - z v2,  t0 = w v0 + y v2 - z v1,
//                  t1 = w v1 - x v2 + z v0,     t2 = w v2 + x v1 - y v0
//   t q*:  r0 = t0 w - tw x - t1 z + t2 y,  r1 = t1 w - tw y + t0 z - t2 x,  r2 = t2 w - tw z - t0 y + t1 x
Value quaternion_rotate(KernelBuilder& b, Value q, Value v);

}  // namespace eagle::kernel::algebra
