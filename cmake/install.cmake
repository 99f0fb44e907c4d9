# What `make install` writes, besides what cmd/ installs itself: headers, the library, pkg-config and module files.
set(WEFT_INC ${PROJECT_BINARY_DIR}/include)
install(FILES ${WEFT_INC}/mpi.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
if(TARGET mpi_abi)
  install(TARGETS mpi_abi mpi_abi_static
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()

file(RELATIVE_PATH WEFT_PC_TO_PREFIX /weft/${CMAKE_INSTALL_LIBDIR}/pkgconfig /weft)
string(REGEX REPLACE "/$" "" WEFT_PC_TO_PREFIX "${WEFT_PC_TO_PREFIX}")
foreach(package IN ITEMS weft mpi-abi)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/${package}.pc.in ${PROJECT_BINARY_DIR}/installed/${package}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/installed/${package}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endforeach()

configure_file(${PROJECT_SOURCE_DIR}/cmake/modulefile.in ${PROJECT_BINARY_DIR}/installed/modulefile @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/installed/modulefile
  DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/modulefiles/mpi RENAME weft-${CMAKE_SYSTEM_PROCESSOR})
install(FILES ${PROJECT_SOURCE_DIR}/packaging/LICENSE.hwloc ${PROJECT_SOURCE_DIR}/packaging/LICENSE.mimalloc
  DESTINATION ${CMAKE_INSTALL_DOCDIR})

# What Python programs import, with this folder in PYTHONPATH (python/weft/opi.py).
install(DIRECTORY ${PROJECT_SOURCE_DIR}/python/weft DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/weft/python FILES_MATCHING PATTERN "*.py")

# Every document, where the others expect it: a link that works in the source tree works in an installation, too.
foreach(document IN ITEMS LICENSE README.md CHANGELOG.md CONTRIBUTING.md AGENTS.md apps/README.md bench/README.md tables/README.md)
  get_filename_component(folder ${document} DIRECTORY)
  install(FILES ${PROJECT_SOURCE_DIR}/${document} DESTINATION ${CMAKE_INSTALL_DOCDIR}/${folder})
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR}
  FILES_MATCHING PATTERN "*.md" PATTERN "*.png" PATTERN "*.json")

# The manual pages of the calls come from the tables, as mpi.h does, and from weft.h.
find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)
set(WEFT_MAN3 ${PROJECT_BINARY_DIR}/man/man3)
add_custom_command(OUTPUT ${WEFT_MAN3}/MPI_Send.3
  COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/gen/manual.py --tables ${PROJECT_SOURCE_DIR}/tables
          --out ${WEFT_MAN3} --version ${PROJECT_VERSION}
  COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/gen/extension_manual.py --header ${PROJECT_SOURCE_DIR}/include/weft.h
          --out ${WEFT_MAN3} --version ${PROJECT_VERSION}
  DEPENDS ${PROJECT_SOURCE_DIR}/gen/extension_manual.py ${PROJECT_SOURCE_DIR}/include/weft.h ${PROJECT_SOURCE_DIR}/gen/manual.py ${PROJECT_SOURCE_DIR}/gen/tables.py
          ${PROJECT_SOURCE_DIR}/tables/mpi_abi.json ${PROJECT_SOURCE_DIR}/tables/functions.json
          ${PROJECT_SOURCE_DIR}/tables/descriptions.json
  COMMENT "Writing the manual pages from tables/" VERBATIM)
add_custom_target(weft_manual ALL DEPENDS ${WEFT_MAN3}/MPI_Send.3)
install(DIRECTORY ${WEFT_MAN3} DESTINATION ${CMAKE_INSTALL_MANDIR})

# Those of the commands come from what they say when asked for help (mpiexec writes its own, from its option table).
if(TARGET weft AND TARGET mpi_abi AND NOT WEFT_SANITIZE)
  set(WEFT_MAN1 ${PROJECT_BINARY_DIR}/man/man1)
  set(generate ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/gen/command_manual.py --version ${PROJECT_VERSION})
  add_custom_command(OUTPUT ${WEFT_MAN1}/weft.1 ${WEFT_MAN1}/mpicc.1
    COMMAND ${CMAKE_COMMAND} -E make_directory ${WEFT_MAN1}
    COMMAND ${generate} --name weft --summary "what an installation of Weft is, what a machine allows, and measurements"
            --variables -- $<TARGET_FILE:weft> > ${WEFT_MAN1}/weft.1
    COMMAND ${generate} --name mpicc --summary "compile and link MPI programs in C; mpicxx, mpic++ and mpiCC do so in C++"
            -- ${PROJECT_BINARY_DIR}/bin/mpicc > ${WEFT_MAN1}/mpicc.1
    DEPENDS ${PROJECT_SOURCE_DIR}/gen/command_manual.py ${PROJECT_SOURCE_DIR}/cmd/mpicc/mpicc.in weft mpi_abi
    COMMENT "Writing the manual pages of the commands" VERBATIM)
  add_custom_target(weft_command_manual ALL DEPENDS ${WEFT_MAN1}/weft.1)
  install(FILES ${WEFT_MAN1}/weft.1 ${WEFT_MAN1}/mpicc.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  foreach(name IN ITEMS mpicxx mpic++ mpiCC)
    file(WRITE ${WEFT_MAN1}/${name}.1 ".so man1/mpicc.1\n")
    install(FILES ${WEFT_MAN1}/${name}.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  endforeach()
endif()
