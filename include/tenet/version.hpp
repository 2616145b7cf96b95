// The one place of the version; CMake and the package files read it from here.
#pragma once

#define TENET_VERSION_MAJOR 0
#define TENET_VERSION_MINOR 1
#define TENET_VERSION_PATCH 0
