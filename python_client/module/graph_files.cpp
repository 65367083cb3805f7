// Files of graphs.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arrays.h"
#include "bindings.h"
#include "eagle/client/graph_file.h"
#include "engine/graph/edges.h"
#include "errors.h"
#include "gil.h"
#include "nodes.h"

namespace eagle::python {
namespace {

std::string dtype_text(DType dtype, std::uint32_t item_bytes) {
  return dtype == DType::other ? "V" + std::to_string(item_bytes) : std::string(plane::name_of(dtype));
}

// (name, names, dtype, shape, bytes, read, written) of each plane.
nb::list plane_rows(const GraphFile& file) {
  nb::list rows;
  for (const SavedPlane& plane : file.planes()) {
    rows.append(nb::make_tuple(plane.name, nb::tuple(nb::cast(plane.names)),
                               dtype_text(plane.dtype, plane.item_bytes), nb::tuple(nb::cast(plane.shape)),
                               plane.bytes, plane.read, plane.written));
  }
  return rows;
}

// (name, plane, shape, strides, offset, dtype, written, whole) of the arrays of each callable.
nb::list call_rows(const GraphFile& file) {
  nb::list calls;
  for (const std::vector<SavedView>& arrays : file.call_arrays()) {
    nb::list rows;
    for (const SavedView& view : arrays) {
      rows.append(nb::make_tuple(view.name, view.plane, nb::tuple(nb::cast(view.shape)),
                                 nb::tuple(nb::cast(view.strides)), view.offset,
                                 dtype_text(view.dtype, view.item_bytes), view.written, view.whole));
    }
    calls.append(rows);
  }
  return calls;
}

std::string_view text_of(const nb::bytes& bytes) {
  return {static_cast<const char*>(bytes.data()), bytes.size()};
}

Graph load(const Session& session, const GraphFile& file, const nb::dict& planes,
           const std::vector<std::pair<std::string, std::int64_t>>& calls, const std::string& name,
           bool recorded) {
  LoadOptions options;
  for (const auto& [plane, array] : planes) {
    auto key = nb::cast<std::string>(plane);
    ArrayView view = view_of(array, "load: plane '" + key + "'");
    options.planes.emplace_back(std::move(key), std::move(view));
  }
  for (const auto& [label, number] : calls)
    options.calls.emplace_back(label, [number = number] { return HostCalls::run(number); });
  options.graph.name = name;
  options.graph.recorded = recorded;
  const Released released;
  return take(session.load(file, options));
}

}  // namespace

void bind_graph_files(nb::module_& m) {
  using NoGil = nb::call_guard<Released>;
  nb::class_<GraphFile>(m, "GraphFile")
      .def_static(
          "read", [](const std::string& path) { return take(GraphFile::read(path)); }, NoGil())
      .def_static("parse", [](const nb::bytes& bytes) { return take(GraphFile::parse(text_of(bytes))); })
      .def(
          "write", [](const GraphFile& self, const std::string& path) { check(self.write(path)); }, NoGil())
      .def_prop_ro("bytes",
                   [](const GraphFile& self) { return nb::bytes(self.bytes().data(), self.bytes().size()); })
      .def_prop_ro("name", &GraphFile::name)
      .def_prop_ro("hash", &GraphFile::hash)
      .def_prop_ro("made_by", &GraphFile::made_by)
      .def_prop_ro("nodes", [](const GraphFile& self) { return graph::leaves(self.graph()).size(); })
      .def_prop_ro("planes", plane_rows)
      .def_prop_ro("calls", &GraphFile::calls)
      .def_prop_ro("call_arrays", call_rows)
      .def("picture", [](const GraphFile& self) { return take(self.picture(PictureFormat::text)); });
  m.def(
      "graph_file", [](const Graph& graph) { return take(graph.file()); }, NoGil());
  m.def("load_graph", load);
}

}  // namespace eagle::python
