#include "engine/codegen/image.h"

#include <llvm/ExecutionEngine/RuntimeDyld.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/Error.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>

#include "engine/codegen/emit.h"

namespace eagle::codegen {
namespace {

constexpr std::size_t page = 4096;

// Hands out sections from one page-aligned arena, so that distances between them are final.
class Arena final : public llvm::RuntimeDyld::MemoryManager {
public:
  explicit Arena(std::size_t bytes) : bytes_((bytes + page - 1) / page * page) {
    data_.reset(static_cast<std::byte*>(std::aligned_alloc(page, bytes_)));
    std::fill_n(data_.get(), bytes_, std::byte{0});
  }

  std::uint8_t* allocateCodeSection(std::uintptr_t size, unsigned alignment, unsigned,
                                    llvm::StringRef) override {
    return take(size, alignment);
  }
  std::uint8_t* allocateDataSection(std::uintptr_t size, unsigned alignment, unsigned, llvm::StringRef,
                                    bool) override {
    return take(size, alignment);
  }
  void registerEHFrames(std::uint8_t*, std::uint64_t, std::size_t) override {}
  void deregisterEHFrames() override {}
  bool finalizeMemory(std::string*) override { return false; }

  [[nodiscard]] const std::byte* begin() const { return data_.get(); }
  [[nodiscard]] std::size_t used() const { return (used_ + page - 1) / page * page; }
  [[nodiscard]] bool overflowed() const { return overflowed_; }

private:
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };

  std::uint8_t* take(std::uintptr_t size, unsigned alignment) {
    const std::size_t align = std::max<std::size_t>(alignment, 16);
    const std::size_t at = (used_ + align - 1) / align * align;
    if (at + size > bytes_) {
      overflowed_ = true;
      return nullptr;
    }
    used_ = at + size;
    return reinterpret_cast<std::uint8_t*>(data_.get() + at);
  }

  std::unique_ptr<std::byte, Free> data_;
  std::size_t bytes_;
  std::size_t used_ = 0;
  bool overflowed_ = false;
};

// A kernel may not reach anything outside itself: every name is refused, and the caller hears which.
class NothingOutside final : public llvm::JITSymbolResolver {
public:
  void lookup(const LookupSet& symbols, OnResolvedFunction done) override {
    done(llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 "undefined symbol " + symbols.begin()->str()));
  }
  llvm::Expected<LookupSet> getResponsibilitySet(const LookupSet&) override { return LookupSet(); }
};

Status check_relocations(const llvm::object::ObjectFile& object) {
  for (const llvm::object::SectionRef& section : object.sections()) {
    for (const llvm::object::RelocationRef& relocation : section.relocations()) {
      llvm::SmallString<32> name;
      relocation.getTypeName(name);
      // The metadata of unwinding is not part of the image's behaviour.
      llvm::Expected<llvm::object::section_iterator> target = section.getRelocatedSection();
      if (target) {
        llvm::Expected<llvm::StringRef> target_name = (*target)->getName();
        if (target_name && target_name->starts_with(".eh_frame")) continue;
        if (!target_name) llvm::consumeError(target_name.takeError());
      } else {
        llvm::consumeError(target.takeError());
      }
      const bool relative = name == "R_X86_64_PC32" || name == "R_X86_64_PLT32" || name == "R_X86_64_PC64" ||
                            name == "R_AARCH64_ADR_PREL_PG_HI21" || name == "R_AARCH64_ADD_ABS_LO12_NC" ||
                            name.starts_with("R_AARCH64_LDST");
      if (!relative)
        return Status(Reason::compile_failed, "relocation " + name.str().str() + " depends on the address");
    }
  }
  return {};
}

}  // namespace

StatusOr<Image> link_image(llvm::MemoryBufferRef buffer) {
  llvm::Expected<std::unique_ptr<llvm::object::ObjectFile>> object =
      llvm::object::ObjectFile::createObjectFile(buffer);
  if (!object) return Status(Reason::compile_failed, llvm::toString(object.takeError()));
  EAGLE_RETURN_IF_ERROR(check_relocations(**object));

  // Sections are at most the file; the rest is room for their alignment.
  Arena arena(buffer.getBufferSize() + 64 * page);
  NothingOutside nothing;
  llvm::RuntimeDyld linker(arena, nothing);
  linker.loadObject(**object);
  linker.resolveRelocations();
  if (arena.overflowed())
    return Status(Reason::compile_failed, "the object's sections do not fit its own size");
  if (linker.hasError()) return Status(Reason::compile_failed, linker.getErrorString().str());
  void* entry = linker.getSymbolLocalAddress(entry_name);
  if (entry == nullptr) return Status(Reason::compile_failed, "the object has no entry function");

  Image image;
  image.bytes.assign(arena.begin(), arena.begin() + arena.used());
  image.entry = static_cast<std::uint64_t>(static_cast<std::byte*>(entry) - arena.begin());
  return image;
}

}  // namespace eagle::codegen
