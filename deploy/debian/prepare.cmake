# Before packages are packed: makes of what `cmake --install` leaves what Debian's policy wants. Manual
# pages are compressed, and each package tells its licence and, in Debian's form, its changes.
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
foreach(package IN LISTS CPACK_COMPONENTS_ALL)
  set(share ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${package}${CPACK_PACKAGING_INSTALL_PREFIX}/share)
  set(doc ${share}/doc/${package})
  file(REMOVE ${doc}/LICENSE)
  file(COPY ${CMAKE_CURRENT_LIST_DIR}/copyright DESTINATION ${doc}
    FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  file(WRITE ${doc}/changelog
"${package} (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * Release ${CPACK_PACKAGE_VERSION}: CHANGELOG.md tells what changed.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
  file(GLOB pages ${share}/man/man1/*.1)
  execute_process(COMMAND gzip -9nf ${doc}/changelog ${pages} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
# The module says where NVIDIA installs CUDA's libraries, which is none of the system's folders.
set(share ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/hippodrome-cuda${CPACK_PACKAGING_INSTALL_PREFIX}/share)
if(EXISTS ${share})
  file(WRITE ${share}/lintian/overrides/hippodrome-cuda "hippodrome-cuda: custom-library-search-path\n")
endif()
# The service, which is installed and not enabled: what it reads lies outside of the prefix.
set(root ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/hippodrome)
set(systemd ${CMAKE_CURRENT_LIST_DIR}/../systemd)
set(readable FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
file(COPY ${systemd}/hippodrome.service DESTINATION ${root}/lib/systemd/system ${readable})
file(COPY ${systemd}/config.json DESTINATION ${root}/etc/hippodrome ${readable})
file(COPY ${systemd}/logrotate DESTINATION ${root}/etc/logrotate.d ${readable})
file(RENAME ${root}/etc/logrotate.d/logrotate ${root}/etc/logrotate.d/hippodrome)
