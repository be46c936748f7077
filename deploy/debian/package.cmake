# Debian packages, by CPack.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME hippodrome)
set(CPACK_PACKAGE_VENDOR "the Hippodrome project")
set(CPACK_PACKAGE_CONTACT "Hippodrome maintainers <maintainers@hippodrome.invalid>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_SOURCE_DIR}/debian/prepare.cmake)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_COMPRESSION_TYPE gzip)  # xz takes ten times longer for an eighth less

# Its dependencies are those that dpkg-shlibdeps finds in the program, and what makes the service's user.
set(CPACK_DEBIAN_HIPPODROME_PACKAGE_NAME hippodrome)
set(CPACK_DEBIAN_HIPPODROME_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_HIPPODROME_PACKAGE_DEPENDS adduser)
set(CPACK_DEBIAN_HIPPODROME_PACKAGE_CONTROL_EXTRA)
foreach(file IN ITEMS conffiles postinst prerm postrm)
  list(APPEND CPACK_DEBIAN_HIPPODROME_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_SOURCE_DIR}/debian/${file})
endforeach()
set(CPACK_DEBIAN_HIPPODROME_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_HIPPODROME_PACKAGE_SUGGESTS
  "hippodrome-cuda (= ${PROJECT_VERSION}), hippodrome-mpi (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_HIPPODROME_DESCRIPTION
"inference server for state-space language models
Hippodrome serves recurrent state-space language models on processors and
GPUs: Hybrid H3 decoders, which make text, and BiGS encoders, which classify,
tag, fill masks, answer questions and embed. It reads published checkpoints,
without PyTorch or JAX, and serves them over gRPC and HTTP, streaming text as
it is made.

The program also converts, evaluates and trains such models. Two small models
to try it with are part of the package.")

# CUDA's libraries come from NVIDIA in packages of many names, or without any: no dependency says so.
# The other libraries that the module links to, the program links to as well.
set(CPACK_DEBIAN_HIPPODROME-CUDA_PACKAGE_NAME hippodrome-cuda)
set(CPACK_DEBIAN_HIPPODROME-CUDA_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_HIPPODROME-CUDA_PACKAGE_DEPENDS "hippodrome (= ${PROJECT_VERSION}), libc6")
set(CPACK_DEBIAN_HIPPODROME-CUDA_DESCRIPTION
"inference server for state-space language models, on NVIDIA GPUs
Hippodrome serves recurrent state-space language models. This is its module
for NVIDIA GPUs; it needs the driver, and cuBLASLt and cuFFT of CUDA 13.")

set(CPACK_DEBIAN_HIPPODROME-MPI_PACKAGE_NAME hippodrome-mpi)
set(CPACK_DEBIAN_HIPPODROME-MPI_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_HIPPODROME-MPI_PACKAGE_DEPENDS "hippodrome (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_HIPPODROME-MPI_PACKAGE_RECOMMENDS openmpi-bin)
set(CPACK_DEBIAN_HIPPODROME-MPI_DESCRIPTION
"state-space language models, trained on several machines
Hippodrome serves and trains recurrent state-space language models. This is
its module for jobs of several processes, which mpirun or srun starts.")

set(CPACK_COMPONENTS_ALL hippodrome)
if(TARGET hippodrome_cuda)
  list(APPEND CPACK_COMPONENTS_ALL hippodrome-cuda)
endif()
if(TARGET hippodrome_mpi)
  list(APPEND CPACK_COMPONENTS_ALL hippodrome-mpi)
endif()
include(CPack)
