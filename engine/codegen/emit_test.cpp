// What the emitter makes for targets that this machine may not have, seen from the object file: it compiles,
// it asks for nothing from outside, and it is the same for every form of the same kernel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/raw_ostream.h>

#include <functional>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "engine/codegen/emit.h"
#include "engine/codegen/image.h"
#include "engine/codegen/straight_line.h"
#include "engine/codegen/target_machine.h"
#include "engine/codegen/uniform.h"
#include "engine/kernel/builder.h"
#include "engine/kernel/random_kernel.h"
#include "engine/kernel/scalar_math.h"
#include "engine/kernel/typing.h"

namespace eagle::codegen {
namespace {

struct CpuTarget {
  const char* name;
  const char* triple;
  const char* cpu;
};

class Emit : public testing::TestWithParam<CpuTarget> {};

// The names that an object wants from elsewhere.
std::vector<std::string> undefined_symbols(const llvm::MemoryBuffer& buffer) {
  auto object = llvm::object::ObjectFile::createObjectFile(buffer.getMemBufferRef());
  EXPECT_TRUE(static_cast<bool>(object));
  std::vector<std::string> names;
  for (const llvm::object::SymbolRef& symbol : (*object)->symbols()) {
    llvm::Expected<std::uint32_t> flags = symbol.getFlags();
    if (!flags || (*flags & llvm::object::SymbolRef::SF_Undefined) == 0) continue;
    llvm::Expected<llvm::StringRef> name = symbol.getName();
    if (name && !name->empty()) names.push_back(name->str());
  }
  return names;
}

// What the kernel's object for this target wants from elsewhere.
std::vector<std::string> wanted_by(const kernel::Kernel& kernel, const CpuTarget& target) {
  const auto machine = machine_for(target.cpu, false, target.triple);
  if (!machine.ok()) return {machine.status().to_string()};
  llvm::LLVMContext context;
  const auto module = emit(kernel, shape_for(kernel, **machine), context, **machine);
  std::string broken;
  llvm::raw_string_ostream stream(broken);
  if (llvm::verifyModule(*module, &stream)) return {broken};
  optimise(*module, **machine, false);
  const auto object = assemble(*module, **machine, llvm::CodeGenFileType::ObjectFile);
  if (!object.ok()) return {object.status().to_string()};
  return undefined_symbols(**object);
}

TEST_P(Emit, ObjectsOfRandomKernelsWantNothingFromOutside) {
  constexpr std::uint64_t first_seed = 4'711;
  for (std::uint64_t seed = first_seed; seed < first_seed + 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    EXPECT_THAT(wanted_by(kernel::random_kernel(seed), GetParam()), testing::IsEmpty());
  }
}

// No function of a C library, in double and in single precision.
TEST_P(Emit, ObjectsOfMathFunctionsWantNothingFromOutside) {
  using kernel::Scalar;
  int functions = 0;
  for (const kernel::Rule& rule : kernel::rules()) {
    if (!kernel::is_math(rule.code)) continue;
    ++functions;
    SCOPED_TRACE(rule.name);
    kernel::KernelBuilder b{std::string(rule.name)};
    std::vector<kernel::KernelBuilder::Value> doubles, singles;
    for (int k = 0; k < rule.operands; ++k)
      doubles.push_back(b.scalar(std::string(1, static_cast<char>('a' + k))));
    for (const auto& value : doubles) singles.push_back(b.convert(value, Scalar::f32));
    b.output("double", b.convert(b.op(rule.code, doubles), Scalar::f64));
    b.output("single", b.convert(b.op(rule.code, singles), Scalar::f64));
    EXPECT_THAT(wanted_by(*b.finish(), GetParam()), testing::IsEmpty());
  }
  EXPECT_EQ(functions, 42);
}

INSTANTIATE_TEST_SUITE_P(Target, Emit,
                         testing::Values(CpuTarget{"x86_64", "x86_64-pc-linux-gnu", "x86-64"},
                                         CpuTarget{"x86_64_v3", "x86_64-pc-linux-gnu", "x86-64-v3"},
                                         CpuTarget{"x86_64_v4", "x86_64-pc-linux-gnu", "x86-64-v4"},
                                         CpuTarget{"aarch64", "aarch64-linux-gnu", "generic"},
                                         CpuTarget{"neoverse", "aarch64-linux-gnu", "neoverse-v1"}),
                         [](const auto& instance) { return instance.param.name; });

// The register need of a kernel decides how many copies run side by side.
TEST(ShapeFor, FillsTheRegistersOfTheTarget) {
  kernel::KernelBuilder small("small");
  small.output("y", small.neg(small.scalar("x")));
  const kernel::Kernel light = *small.finish();
  kernel::KernelBuilder large("large");
  const auto v = large.vector("v", 40);
  large.output("y", large.neg(v));
  const kernel::Kernel heavy = *large.finish();

  const auto avx512 = machine_for("x86-64-v4", false, "x86_64-pc-linux-gnu");
  const auto sse = machine_for("x86-64", false, "x86_64-pc-linux-gnu");
  EXPECT_EQ(shape_for(light, **avx512).width, 8);
  EXPECT_EQ(shape_for(light, **avx512).copies, 4);
  EXPECT_EQ(shape_for(heavy, **avx512).copies, 1);
  EXPECT_EQ(shape_for(light, **sse).width, 2);
  EXPECT_LE(shape_for(light, **sse).copies, shape_for(light, **avx512).copies);
}

TEST(ShapeFor, TakesTheCopiesThatItIsTold) {
  kernel::KernelBuilder b("small");
  b.output("y", b.neg(b.scalar("x")));
  const kernel::Kernel kernel = *b.finish();
  const auto machine = machine_for("x86-64-v3", false, "x86_64-pc-linux-gnu");
  for (const int copies : {1, 2, 4}) EXPECT_EQ(shape_for(kernel, **machine, copies).copies, copies);
}

std::string assembly_of(const kernel::Kernel& kernel) {
  const auto machine = machine_for("x86-64-v3", false, "x86_64-pc-linux-gnu");
  EXPECT_TRUE(machine.ok());
  llvm::LLVMContext context;
  const auto module = emit(kernel, shape_for(kernel, **machine), context, **machine);
  optimise(*module, **machine, false);
  const auto text = assemble(*module, **machine, llvm::CodeGenFileType::AssemblyFile);
  return text.ok() ? (*text)->getBuffer().str() : text.status().to_string();
}

// y0 = a x + b, y1 = a y0 + b, ...: every value is an output, and none is needed for long.
kernel::Kernel chain(int links) {
  kernel::KernelBuilder b("chain");
  auto value = b.scalar("x");
  std::vector<std::pair<kernel::KernelBuilder::Value, kernel::KernelBuilder::Value>> numbers;
  for (int i = 0; i < links; ++i)
    numbers.emplace_back(b.param("a" + std::to_string(i)), b.param("b" + std::to_string(i)));
  int link = 0;
  for (const auto& [factor, shift] : numbers) {
    value = b.add(b.mul(factor, value), shift);
    b.output("y" + std::to_string(link++), value);
  }
  return *b.finish();
}

TEST(ShapeFor, CountsWhatAStraightLineHasInHandAndNotItsPlanes) {
  const auto machine = machine_for("x86-64-v3", false, "x86_64-pc-linux-gnu");
  EXPECT_EQ(shape_for(chain(16), **machine).copies, 4);
}

TEST(StraightLine, KeepsWhatIsUsedLater) {
  EXPECT_EQ(vectors_kept(chain(16), uniform_values(chain(16))), 2);
  kernel::KernelBuilder b("sum");  // all of them are in hand before the first is used again
  std::vector<kernel::KernelBuilder::Value> squares;
  const auto x = b.scalar("x");
  for (int i = 0; i < 10; ++i) squares.push_back(b.mul(x, b.add(x, b.real(i))));
  auto sum = squares[9];
  for (int i = 8; i >= 0; --i) sum = b.add(sum, squares[static_cast<std::size_t>(i)]);
  b.output("y", sum);
  const kernel::Kernel kernel = *b.finish();
  EXPECT_GE(vectors_kept(kernel, uniform_values(kernel)), 10);
}

TEST(StraightLine, HasNoMaskNoLoopNoStateAndNothingThatIsCounted) {
  EXPECT_TRUE(is_straight_line(chain(2)));
  kernel::KernelBuilder state("state");
  state.commit("v", state.neg(state.state("v", {})));
  EXPECT_FALSE(is_straight_line(*state.finish()));
  kernel::KernelBuilder divides("divides");
  const auto i = divides.index("i");
  divides.output("y", divides.convert(divides.op(kernel::Opcode::floor_div, {divides.integer(7), i}),
                                      kernel::Scalar::f64));
  EXPECT_FALSE(is_straight_line(*divides.finish()));
  kernel::KernelBuilder sums("sums");
  sums.declare_reduction("total", {}, kernel::ReduceOp::sum);
  sums.commit("total", sums.scalar("x"));
  EXPECT_FALSE(is_straight_line(*sums.finish()));
}

kernel::Kernel ends_with(
    const std::function<void(kernel::KernelBuilder&, kernel::KernelBuilder::Value)>& more) {
  kernel::KernelBuilder b("ends");
  const auto x = b.state("x", {});
  b.terminated("done");
  more(b, x);
  b.commit("x", b.mul(x, b.real(0.5)));
  b.commit("done", b.le(x, b.real(1)));
  return *b.finish();
}

bool may_run_on(const kernel::Kernel& kernel) { return codegen::may_run_on(kernel, uniform_values(kernel)); }

TEST(FinishedSamples, MayRunOnWhereNobodySeesIt) {
  using Value = kernel::KernelBuilder::Value;
  EXPECT_TRUE(may_run_on(ends_with([](auto&, Value) {})));
  EXPECT_FALSE(may_run_on(chain(2)));                       // has no mask
  EXPECT_FALSE(may_run_on(ends_with([](auto& b, Value x) {  // a division by zero is counted
    const Value i = b.convert(x, kernel::Scalar::i64);
    b.output("y", b.convert(b.op(kernel::Opcode::floor_div, {b.integer(7), i}), kernel::Scalar::f64));
  })));
  EXPECT_FALSE(may_run_on(ends_with([](auto& b, Value x) {
    b.declare_reduction("total", {}, kernel::ReduceOp::sum);
    b.commit("total", x);
  })));
  EXPECT_FALSE(may_run_on(ends_with([](auto& b, Value x) {
    const Value five = b.begin_while({x}, 5)[0];
    const Value body = b.while_condition(b.le(five, b.real(5)))[0];
    b.output("y", b.end_while({b.add(body, b.real(1))})[0]);
  })));
  const auto chooses = [](int ops) {
    return ends_with([ops](auto& b, Value x) {
      b.begin_if(b.le(x, b.real(2)));
      Value y = x;
      for (int i = 0; i < ops; ++i) y = b.mul(y, y);
      b.otherwise({y});
      b.output("y", b.end_if({x})[0]);
    });
  };
  EXPECT_TRUE(may_run_on(chooses(2)));
  EXPECT_FALSE(may_run_on(chooses(30)));  // is jumped around where no lane takes it
}

// Of a chain whose every value is stored, none waits in memory for that.
TEST(StraightLine, SpillsNothing) {
  const auto machine = machine_for("x86-64-v3", false, "x86_64-pc-linux-gnu");
  const std::string text = assembly_of(chain(16));
  EXPECT_THAT(text, testing::HasSubstr("vmulpd"));
  const std::regex store_to_stack("vmovap[ds]\\s+%ymm\\d+, [^\\n]*\\(%r[sb]p\\)");
  EXPECT_FALSE(std::regex_search(text, store_to_stack)) << text;
}

TEST(ShapeFor, IsTwiceAsWideWhereAllValuesAreHalfAsWide) {
  kernel::KernelBuilder b("floats", kernel::Scalar::f32);
  b.output("y", b.neg(b.scalar("x")));
  const auto avx512 = machine_for("x86-64-v4", false, "x86_64-pc-linux-gnu");
  EXPECT_EQ(shape_for(*b.finish(), **avx512).width, 16);
}

TEST(Streaming, OutputsHaveStoresPastTheCachesAndOthersHaveNot) {
  kernel::KernelBuilder output("output");
  output.output("y", output.neg(output.scalar("x")));
  kernel::KernelBuilder state("state");
  state.commit("x", state.neg(state.state("x", {})));
  kernel::KernelBuilder masked("masked");
  const auto x = masked.scalar("x");
  masked.output("y", x);
  masked.terminated("done");
  masked.commit("done", masked.ge(x, masked.real(1.0)));
  EXPECT_NE(assembly_of(*output.finish()).find("vmovnt"), std::string::npos);
  EXPECT_EQ(assembly_of(*state.finish()).find("vmovnt"), std::string::npos);
  EXPECT_EQ(assembly_of(*masked.finish()).find("vmovnt"), std::string::npos);
}

TEST(LinkImage, RefusesAnObjectThatWantsSomethingFromOutside) {
  const auto machine = machine_for("x86-64", false, "x86_64-pc-linux-gnu");
  ASSERT_TRUE(machine.ok());
  llvm::LLVMContext context;
  llvm::Module module("outside", context);
  module.setTargetTriple((*machine)->getTargetTriple().str());
  module.setDataLayout((*machine)->createDataLayout());
  auto* type =
      llvm::FunctionType::get(llvm::Type::getVoidTy(context), {llvm::PointerType::get(context, 0)}, false);
  auto* outside = llvm::Function::Create(type, llvm::Function::ExternalLinkage, "system", module);
  auto* entry = llvm::Function::Create(type, llvm::Function::ExternalLinkage, entry_name, module);
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(context, "entry", entry));
  b.CreateCall(outside, {entry->getArg(0)});
  b.CreateRetVoid();
  const auto object = assemble(module, **machine, llvm::CodeGenFileType::ObjectFile);
  ASSERT_TRUE(object.ok());
  const StatusOr<Image> image = link_image((*object)->getMemBufferRef());
  ASSERT_FALSE(image.ok());
  EXPECT_EQ(image.status().reason(), Reason::compile_failed);
  EXPECT_THAT(image.status().message(), testing::HasSubstr("system"));
}

}  // namespace
}  // namespace eagle::codegen
