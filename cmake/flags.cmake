# Flags of the library proper; commands and tests use the full language.
set(WEFT_ARCH "-march=x86-64-v2" CACHE STRING "instruction set of the library")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g")
set(CMAKE_C_FLAGS_RELEASE "-O2 -g")
option(WEFT_WERROR "warnings are errors: continuous integration, not users' compilers" OFF)
add_compile_options(-Wall -Wextra -Wshadow -Wno-unused-parameter ${WEFT_ARCH})
if(WEFT_WERROR)
  add_compile_options(-Werror)
endif()
set(WEFT_LIB_FLAGS
  $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions -fno-rtti -fno-threadsafe-statics>
  -fvisibility=hidden -fPIC -ftls-model=initial-exec -fno-semantic-interposition -ffunction-sections)
set(WEFT_DEFINES
  WEFT_CHECKS=$<BOOL:${WEFT_CHECKS}> WEFT_CHECK_HANDLES=$<BOOL:${WEFT_CHECK_HANDLES}> WEFT_ASSERTIONS=$<BOOL:${WEFT_ASSERTIONS}> WEFT_SINGLE=$<BOOL:${WEFT_SINGLE}>
  WEFT_THREADS_PRESET=$<BOOL:${WEFT_THREADS_PRESET}> WEFT_MIMALLOC=$<BOOL:${WEFT_MIMALLOC_DIR}> WEFT_VERSION="${PROJECT_VERSION}" _GNU_SOURCE)
if(WEFT_SANITIZE)
  add_compile_options(-fsanitize=${WEFT_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${WEFT_SANITIZE})
endif()
