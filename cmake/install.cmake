# What `make install` writes, besides what cmd/ installs itself: headers, the library, pkg-config and module files.
set(WEFT_INC ${PROJECT_BINARY_DIR}/include)
install(FILES ${WEFT_INC}/mpi.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(EXISTS ${PROJECT_SOURCE_DIR}/include/weft.h)
  install(FILES ${PROJECT_SOURCE_DIR}/include/weft.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endif()
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
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
