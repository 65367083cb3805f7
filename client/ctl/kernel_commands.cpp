// kernel: what a kernel of a graph is: roles as verified, IR, and code as compiled.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "client/ctl/command.h"
#include "client/ctl/graphs_list.h"
#include "client/ctl/json.h"
#include "client/ctl/output.h"
#include "eagle/v1/service.pb.h"
#include "engine/codegen/device_arch.h"
#include "engine/codegen/ptx.h"
#include "engine/kernel/ir.h"
#include "engine/kernel/text.h"

namespace eagle::ctl {
namespace {

struct AskedKernel {
  std::string graph;
  std::string kernel;
  bool roles = false;
  bool ir = false;
  bool assembly = false;
  bool llvm = false;
  bool ptx = false;
  std::string arch = std::string(codegen::default_device_arch);

  [[nodiscard]] bool code() const { return assembly || llvm || ptx; }
};

std::string type_text(const v1::Type& type) {
  std::string text(kernel::name_of(static_cast<kernel::Scalar>(type.scalar())));
  for (int i = 0; i < type.extents_size(); ++i)
    text += (i == 0 ? "[" : ",") + std::to_string(type.extents(i));
  return type.extents_size() == 0 ? text : text + "]";
}

std::string role_text(const v1::InspectedArgument& argument) {
  std::string text(kernel::name_of(static_cast<kernel::Role>(argument.role())));
  if (argument.role() == v1::ROLE_REDUCE)
    text += " " + std::string(kernel::name_of(static_cast<kernel::ReduceOp>(argument.reduce())));
  return text;
}

std::string axes_text(const v1::InspectedArgument& argument) {
  std::string text;
  for (const v1::Axis& axis : argument.axes())
    text += (text.empty() ? "" : ", ") + axis.name() + ": " + std::to_string(axis.extent());
  return text;
}

std::string touches_text(const v1::InspectedArgument& argument) {
  if (argument.role() == v1::ROLE_PARAM) return "by value";
  if (argument.read() && argument.written()) return "read, written";
  return argument.read() ? "read" : argument.written() ? "written" : "not looked at";
}

// One of the forms of one kernel or function, from the daemon.
StatusOr<std::string> listing(const Operator& caller, v1::ListKernelRequest& request, v1::ListingForm form) {
  request.set_form(form);
  v1::ListKernelReply reply;
  EAGLE_RETURN_IF_ERROR(caller.admin->kernel(request, reply));
  return std::move(*reply.mutable_text());
}

// Made here: no daemon has to know of GPUs for it.
StatusOr<std::string> ptx_of(const std::string& ir, const std::string& arch) {
  EAGLE_ASSIGN_OR_RETURN(const kernel::Kernel kernel, kernel::from_text(ir));
  codegen::Compiler compiler;
  return codegen::ptx_of(compiler, kernel, arch);
}

bool runs(const v1::InspectedFunction& function, const v1::InspectReply& details, int kernel) {
  if (function.hash() == details.kernels(kernel).hash()) return true;
  // Fused: its nodes tell, by what they launch.
  const std::string of = "a launch of kernel '" + details.kernels(kernel).name() + "' ";
  return function.nodes_size() > 1 &&
         std::any_of(function.nodes().begin(), function.nodes().end(), [&](const v1::ExecutedNode& node) {
           const int index = static_cast<int>(node.index());
           return index < details.nodes_size() && details.nodes(index).kind().starts_with(of);
         });
}

// The compiled functions that the kernel is (a part of), each once.
std::vector<int> functions_of(const v1::InspectReply& details, int kernel) {
  std::vector<int> found;
  for (int f = 0; f < details.functions_size(); ++f) {
    if (!runs(details.functions(f), details, kernel)) continue;
    const bool known = std::any_of(found.begin(), found.end(), [&](int other) {
      return details.functions(other).hash() == details.functions(f).hash();
    });
    if (!known) found.push_back(f);
  }
  return found;
}

Json arguments_json(const v1::InspectedKernel& kernel) {
  Json list = Json::array();
  for (const v1::InspectedArgument& argument : kernel.arguments()) {
    list.push_back({{"name", argument.name()},
                    {"role", role_text(argument)},
                    {"type", type_text(argument.type())},
                    {"axes", axes_text(argument)},
                    {"read", argument.read()},
                    {"written", argument.written()}});
  }
  return list;
}

std::string arguments_text(const v1::InspectedKernel& kernel) {
  Table table({{"ARGUMENT"}, {"ROLE"}, {"TYPE"}, {"AXES"}, {"PLANE IS"}});
  for (const v1::InspectedArgument& argument : kernel.arguments())
    table.add({argument.name(), role_text(argument), type_text(argument.type()), axes_text(argument),
               touches_text(argument)});
  return table.empty() ? "no arguments\n" : table.text();
}

StatusOr<int> which_kernel(const v1::InspectReply& details, const std::string& asked) {
  std::vector<std::string> names;
  for (const v1::InspectedKernel& kernel : details.kernels()) names.push_back(kernel.name());
  if (!asked.empty()) {
    EAGLE_ASSIGN_OR_RETURN(const std::size_t found, find_name("kernel", names, asked));
    return static_cast<int>(found);
  }
  if (names.size() == 1) return 0;
  if (names.empty()) return Status(Reason::unknown_name, "this graph launches no kernel");
  std::string listed;
  constexpr std::size_t most = 20;
  for (std::size_t i = 0; i < names.size() && i < most; ++i)
    listed += (i == 0 ? "" : ", ") + std::to_string(i) + " " + names[i];
  return Status(Reason::bad_value,
                "say which kernel, by name or index: " + listed + (names.size() > most ? ", ..." : ""));
}

StatusOr<Exit> kernel(const Options& options, const AskedKernel& asked) {
  EAGLE_ASSIGN_OR_RETURN(const Operator caller, connect_operator(options));
  EAGLE_ASSIGN_OR_RETURN(const auto all, caller.session.graphs(GraphScope::visible));
  EAGLE_ASSIGN_OR_RETURN(const GraphInfo graph, find_graph(all, asked.graph));
  v1::InspectReply details;
  EAGLE_RETURN_IF_ERROR(caller.admin->inspect({graph.session, graph.graph}, details));
  EAGLE_ASSIGN_OR_RETURN(const int index, which_kernel(details, asked.kernel));
  const v1::InspectedKernel& found = details.kernels(index);

  // Without a wish: what is quick to have.
  const bool by_default = !asked.roles && !asked.ir && !asked.code();
  v1::ListKernelRequest request;
  request.set_session(graph.session);
  request.set_graph(graph.graph);
  Json json = {{"graph", id_of(graph)}, {"kernel", found.name()}, {"hash", found.hash()}};
  std::string text = list_text({{"kernel", found.name()}, {"hash", found.hash()}});
  if (asked.roles || by_default) {
    json["arguments"] = arguments_json(found);
    text += "\n" + arguments_text(found);
  }
  if (asked.ir || by_default) {
    request.set_kernel(static_cast<std::uint32_t>(index));
    EAGLE_ASSIGN_OR_RETURN(const std::string ir, listing(caller, request, v1::LISTING_FORM_IR));
    json["ir"] = ir;
    text += "\n" + ir;
  }
  if (asked.code()) json["functions"] = Json::array();
  for (const int f : functions_of(details, index)) {
    if (!asked.code()) break;
    const v1::InspectedFunction& function = details.functions(f);
    request.set_function(static_cast<std::uint32_t>(f));
    std::string nodes;
    for (const v1::ExecutedNode& node : function.nodes())
      nodes += (nodes.empty() ? "" : " + ") + std::to_string(node.index()) + " " + node.label();
    Json one = {{"nodes", nodes},
                {"cpu", function.cpu()},
                {"lanes", function.lanes()},
                {"code_bytes", function.code_bytes()}};
    text += "\n" + list_text({{"function of", nodes},
                              {"for", function.cpu() + ", " + plural(function.lanes(), "sample") +
                                          " a block, " + bytes_text(function.code_bytes())}});
    for (const auto& [wanted, form, name] :
         {std::tuple{asked.llvm, v1::LISTING_FORM_LLVM, "llvm"},
          std::tuple{asked.assembly, v1::LISTING_FORM_ASSEMBLY, "assembly"}}) {
      if (!wanted) continue;
      EAGLE_ASSIGN_OR_RETURN(const std::string code, listing(caller, request, form));
      one[name] = code;
      text += "\n" + code;
    }
    if (asked.ptx) {
      EAGLE_ASSIGN_OR_RETURN(const std::string ir, listing(caller, request, v1::LISTING_FORM_IR));
      EAGLE_ASSIGN_OR_RETURN(const std::string code, ptx_of(ir, asked.arch));
      one["ptx"] = code;
      text += "\n" + code;
    }
    json["functions"].push_back(std::move(one));
  }
  if (options.json) {
    print_json(json);
  } else {
    std::cout << text;
  }
  return Exit::well;
}

}  // namespace

void add_kernel_commands(CLI::App& app, Chosen& chosen) {
  CLI::App* const command =
      app.add_subcommand("kernel", "What a kernel of a graph is, and its compiled code");
  const auto asked = std::make_shared<AskedKernel>();
  command->add_option("GRAPH", asked->graph, "Its name, or its id as `eaglectl graphs` lists it")->required();
  command->add_option("KERNEL", asked->kernel, "Its name or index; may be left out where there is one only");
  command->add_flag("--roles", asked->roles, "Its arguments, as verified (with --ir the default)");
  command->add_flag("--ir", asked->ir, "Its program, as verified");
  command->add_flag("--asm", asked->assembly, "The machine code of every function that it is a part of");
  command->add_flag("--llvm", asked->llvm, "The optimised LLVM text of the same");
  command->add_flag("--ptx", asked->ptx, "The same functions for a GPU, as PTX");
  command->add_option("--arch", asked->arch, "The GPU's architecture for --ptx, sm_75 to sm_90")
      ->capture_default_str();
  command->final_callback([&chosen, asked] {
    chosen.command = [asked](const Options& options) { return kernel(options, *asked); };
  });
}

}  // namespace eagle::ctl
