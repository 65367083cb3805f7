# Read by cpack for each generator. DEB: four packages of this build, for the system that it was made on. TGZ: one archive
# that may be unpacked anywhere.
set(version ${CPACK_PACKAGE_VERSION})
if(CPACK_GENERATOR STREQUAL "TGZ")
  set(CPACK_ARCHIVE_COMPONENT_INSTALL OFF)
  set(CPACK_MONOLITHIC_INSTALL ON)
  set(CPACK_PACKAGE_FILE_NAME eagled-${version}-linux-${CPACK_EAGLE_PROCESSOR})
  return()
endif()

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(folder ${CPACK_EAGLE_SOURCE}/deploy/debian)

set(CPACK_DEBIAN_DAEMON_PACKAGE_NAME eagled)
set(CPACK_DEBIAN_DAEMON_DESCRIPTION "graph execution daemon
 eagled owns memory that its clients compute on, compiles their kernels and runs graphs of them.")
set(CPACK_DEBIAN_DAEMON_PACKAGE_DEPENDS passwd)
set(CPACK_DEBIAN_DAEMON_PACKAGE_CONTROL_EXTRA ${folder}/postinst ${folder}/prerm ${folder}/postrm)

set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libeagle0.1)
set(CPACK_DEBIAN_LIBRARY_DESCRIPTION "C++ client of eagled: the shared library")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_RECOMMENDS eagled)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${folder}/triggers)

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libeagle-dev)
set(CPACK_DEBIAN_DEV_DESCRIPTION "C++ client of eagled: headers, CMake and pkg-config packages, protocol")
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libeagle0.1 (= ${version})")
set(CPACK_DEBIAN_DEV_PACKAGE_SHLIBDEPS OFF)

string(REGEX MATCH "^([0-9]+)\\.([0-9]+)" python "${CPACK_EAGLE_PYTHON}")
math(EXPR next "${CMAKE_MATCH_2} + 1")
set(CPACK_DEBIAN_PYTHON3_PACKAGE_NAME python3-eagle)
set(CPACK_DEBIAN_PYTHON3_DESCRIPTION "Python client of eagled")
set(CPACK_DEBIAN_PYTHON3_PACKAGE_DEPENDS "python3 (>= ${python}), python3 (<< 3.${next}), python3-numpy")
set(CPACK_DEBIAN_PYTHON3_PACKAGE_RECOMMENDS eagled)
