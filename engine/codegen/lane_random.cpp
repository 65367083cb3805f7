// random_words: Philox4x32-10 on lanes (engine/kernel/random_words.h is what it means).
#include <llvm/IR/Constants.h>

#include <array>

#include "engine/codegen/lanes.h"
#include "engine/kernel/random_words.h"

namespace eagle::codegen {

using kernel::Philox;
using kernel::Scalar;
using llvm::Value;

namespace {

// 32-bit words in 64-bit lanes, so that a product is one instruction. Values that are the same for all lanes
// stay scalars until they meet others.
class Words {
public:
  Words(llvm::IRBuilder<>& builder, int width) : b_(builder), width_(static_cast<unsigned>(width)) {}

  Value* wide(Value* value) {
    return width_ == 1 || value->getType()->isVectorTy() ? value : b_.CreateVectorSplat(width_, value);
  }
  Value* constant(std::uint64_t value, Value* like) { return llvm::ConstantInt::get(like->getType(), value); }
  Value* low(Value* value) { return b_.CreateAnd(value, constant(0xffffffffu, value)); }
  Value* high(Value* value) { return b_.CreateLShr(value, constant(32, value)); }

  std::array<Value*, 4> block(Value* seed, Value* number, Value* sample) {
    std::array<Value*, 4> x = {wide(low(number)), wide(high(number)), wide(low(sample)), wide(high(sample))};
    std::array<Value*, 2> key = {low(seed), high(seed)};
    for (int round = 0; round < Philox::rounds; ++round) {
      Value* a = b_.CreateMul(low(x[0]), constant(Philox::multipliers[0], x[0]));
      Value* b = b_.CreateMul(low(x[2]), constant(Philox::multipliers[1], x[2]));
      x = {b_.CreateXor(b_.CreateXor(high(b), x[1]), wide(key[0])), low(b),
           b_.CreateXor(b_.CreateXor(high(a), x[3]), wide(key[1])), low(a)};
      for (std::size_t i = 0; i < 2; ++i)
        key[i] = low(b_.CreateAdd(key[i], constant(Philox::key_steps[i], key[i])));
    }
    return x;
  }

private:
  llvm::IRBuilder<>& b_;
  unsigned width_;
};

}  // namespace

// The words may span two blocks. Where only the first is asked for, or the counter is a constant, what is not
// needed is dead code.
LaneValue LaneEmitter::random_words(const LaneValue& seed, const LaneValue& counter) {
  const LaneValue samples = sample_index();
  LaneValue result{kernel::Type{Scalar::i64, 1, {4, 1}}, false, {}};
  result.parts.resize(4 * copies(false));
  Words words(b_, shape_.width);
  for (std::size_t j = 0; j < copies(false); ++j) {
    Value* key = seed.parts[seed.uniform ? 0 : j];
    Value* first = counter.parts[counter.uniform ? 0 : j];
    Value* last = b_.CreateAdd(first, words.constant(3, first));
    Value* two = words.constant(2, first);
    const auto block = words.block(key, b_.CreateLShr(first, two), samples.parts[j]);
    const auto next = words.block(key, b_.CreateLShr(last, two), samples.parts[j]);
    const std::array<Value*, 8> both = {block[0], block[1], block[2], block[3],
                                        next[0],  next[1],  next[2],  next[3]};
    Value* offset = b_.CreateAnd(first, words.constant(3, first));
    for (std::size_t word = 0; word < 4; ++word) {
      Value* chosen = both[word];
      for (std::size_t at = 1; at < 4; ++at) {
        Value* here = b_.CreateICmpEQ(offset, words.constant(at, offset));
        chosen = b_.CreateSelect(here, both[word + at], chosen);
      }
      result.parts[word * copies(false) + j] = chosen;
    }
  }
  return result;
}

}  // namespace eagle::codegen
