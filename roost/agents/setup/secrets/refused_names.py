"""Reserved names: variables that change how programs load, search paths, or the platform.

An agent's environment applies to every program in its container, the engine's own included.
"""

from typing import Final

ALLOWED: Final = frozenset({"NODE_AUTH_TOKEN"})
"""Exceptions to the prefixes below: a registry's token, not an option."""

ANY_CASE_SUFFIX: Final = "_PROXY"  # curl reads the small letters, Python any
ANY_CASE_PREFIX: Final = "NPM_CONFIG_"

_LOADER_PREFIXES = ("LD_", "DYLD_", "GLIBC_", "MALLOC_")  # of the dynamic linker and the C library
_INTERPRETER_PREFIXES = ("BASH_", "NODE_", "PYTHON", "PERL5", "PERL_", "RUBY", "BUNDLE_", "LUA_")
_PROGRAM_PREFIXES = ("SSL_CERT_", "GIT_CONFIG", "GIT_SSL_", "GIT_TRACE", "GIT_PROXY_", "XDG_")
_PLATFORM_PREFIXES = ("ROOST_", "OPENCLAW_", "CLAWDBOT_", "MOLTBOT_", "HERMES_", "API_SERVER_", "TERMINAL_")
PREFIXES: Final = _LOADER_PREFIXES + _INTERPRETER_PREFIXES + _PROGRAM_PREFIXES + _PLATFORM_PREFIXES

NAMES: Final = frozenset(
    """
    PATH HOME USER LOGNAME SHELL HOSTNAME PWD OLDPWD TMPDIR AGENT_ID
    ENV IFS SHELLOPTS BASHOPTS PS4 PROMPT_COMMAND CDPATH GLOBIGNORE ZDOTDIR
    EDITOR VISUAL PAGER MANPAGER BROWSER LESSOPEN LESSCLOSE SUDO_ASKPASS SSH_ASKPASS
    GIT_SSH GIT_SSH_COMMAND GIT_ASKPASS GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_PAGER
    GIT_EXTERNAL_DIFF GIT_EXEC_PATH GIT_TEMPLATE_DIR GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
    PERLLIB GEM_HOME GEM_PATH PHPRC PHP_INI_SCAN_DIR CLASSPATH RUSTC_WRAPPER MAKEFLAGS
    JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS _JAVA_OPTIONS MAVEN_OPTS GRADLE_OPTS
    GCONV_PATH LOCPATH NLSPATH HOSTALIASES LOCALDOMAIN RES_OPTIONS TZDIR
    OPENSSL_CONF OPENSSL_MODULES OPENSSL_ENGINES SSLKEYLOGFILE
    CURL_CA_BUNDLE REQUESTS_CA_BUNDLE CURL_HOME WGETRC INPUTRC VIRTUAL_ENV
    """.split()
)


def is_reserved_name(name: str) -> bool:
    if name in ALLOWED:
        return False
    upper = name.upper()
    is_any_case = upper.startswith(ANY_CASE_PREFIX) or upper.endswith(ANY_CASE_SUFFIX)
    return is_any_case or name in NAMES or name.startswith(PREFIXES)
