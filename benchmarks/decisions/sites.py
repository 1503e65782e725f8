"""The sites: manuals from Debian packages, each of them finite, and where each of their generators puts its content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final


class Part(Enum):
    """Who may look at a site: the rules were mended on the named ones, and may be on the seen ones; never on the unseen."""

    NAMED = "named"
    SEEN = "seen"
    UNSEEN = "unseen"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manual:
    """A site: the packages that hold it, the web root in them, and the pages at which it is entered (patterns of files).

    The first of the selectors in ``content`` that finds something is the container of a page's content; what ``without``
    finds in it is none. ``packages`` beyond the first ones may hold what those link to.
    """

    packages: Sequence[str]
    folder: str
    starts: Sequence[str] = ("index.html",)
    generator: str
    content: Sequence[str] = ("body",)
    without: str = ""
    part: Part = Part.SEEN
    pages: Sequence[str] = field(default=("*.html", "*.htm", "*.xhtml"))


_DOCBOOK: Final = ".navheader, .navfooter"
_PUBLICAN: Final = "#banner, .docnav, #title, .toc > .docnav, #cover"
_SPHINX: Final = ("[role=main]", "main", ".document .body", ".body")
_DOXYGEN: Final = (".contents",)
_JAVADOC: Final = ("main", "body")
_JAVADOC_WITHOUT: Final = ".top-nav, .topNav, .subNav, .bottomNav, .sub-nav, nav, header[role=banner], footer, noscript"
_DOC: Final = "usr/share/doc"
_QT: Final = (
    "qtbase qtdeclarative qt3d qtcharts qtconnectivity qtdatavisualization qtgamepad qtgraphicaleffects qtlocation qtmultimedia"
    " qtnetworkauth qtpdf qtpim qtquickcontrols2- qtquickcontrols qtremoteobjects qtscript qtscxml qtsensors qtserialbus"
    " qtserialport qtspeech qtsvg qttools qtvirtualkeyboard qtwayland qtwebchannel qtwebengine qtwebsockets qtwebview"
    " qtx11extras qtxmlpatterns"
)

MANUALS: Final[Mapping[str, Manual]] = {
    # Named in issue 42.
    "postfix-doc": Manual(
        packages=["postfix-doc"], folder=f"{_DOC}/postfix/html", generator="by hand", part=Part.NAMED
    ),
    "python-django-doc": Manual(
        packages=["python-django-doc"],
        folder=f"{_DOC}/python-django-doc/html",
        generator="Sphinx (a theme of its own)",
        content=("#yui-main", *_SPHINX),
        part=Part.NAMED,
    ),
    "lilypond-doc-html": Manual(
        packages=["lilypond-doc-html", "lilypond-doc"],
        folder=f"{_DOC}/lilypond/html",
        starts=("index.html", "Documentation/index.html"),
        generator="Texinfo (a theme of its own)",
        content=("#main", "body"),
        # The menus below the headings list the sections of a chapter, as the tables of contents of DocBook and Sphinx do.
        without=".nav_table, #footer, #tocframe, .header",
        part=Part.NAMED,
    ),
    "gimp-help-de": Manual(
        packages=["gimp-help-de"],
        folder="usr/share/gimp/2.0/help/de",
        generator="DocBook",
        without=_DOCBOOK,
        part=Part.NAMED,
    ),
    "erlang-doc": Manual(
        packages=["erlang-doc"],
        folder=f"{_DOC}/erlang-doc",
        starts=("doc/index.html",),
        generator="erl_docgen, Javadoc",
        content=("#content", "main", "body"),
        part=Part.NAMED,
    ),
    "gnucash-docs": Manual(
        packages=["gnucash-docs"],
        folder=f"{_DOC}/gnucash-docs",
        starts=("*/index.html",),
        generator="DocBook",
        without=_DOCBOOK,
        part=Part.NAMED,
    ),
    "installation-guide-amd64": Manual(
        packages=["installation-guide-amd64"],
        folder=f"{_DOC}/installation-guide-amd64",
        starts=("*/index.html",),
        generator="DocBook",
        without=_DOCBOOK,
        part=Part.NAMED,
    ),
    "debian-handbook": Manual(
        packages=["debian-handbook"],
        folder=f"{_DOC}/debian-handbook/html",
        starts=("*/index.html",),
        generator="Publican",
        without=_PUBLICAN,
        part=Part.NAMED,
    ),
    "libreoffice-help-ru": Manual(
        packages=["libreoffice-help-ru", "libreoffice-help-common"],
        folder="usr/share/libreoffice/help",
        starts=("index.html", "ru/text/shared/05/new_help.html", "ru/text/*/main0000.html"),
        generator="LibreOffice help",
        content=("#DisplayArea", "body"),
        part=Part.NAMED,
    ),
    "python-pandas-doc": Manual(
        packages=["python-pandas-doc"],
        folder=f"{_DOC}/python-pandas-doc/html",
        generator="Sphinx (PyData)",
        content=_SPHINX,
        part=Part.NAMED,
    ),
    "linux-doc-6.1": Manual(
        packages=["linux-doc-6.1"],
        folder=f"{_DOC}/linux-doc-6.1/html",
        generator="Sphinx (Read the Docs)",
        content=_SPHINX,
        part=Part.NAMED,
    ),
    "libstdc++-12-doc": Manual(
        packages=["libstdc++-12-doc"],
        folder=f"{_DOC}/gcc-12-base/libstdc++",
        starts=("index.html", "user/index.html", "*/index.html"),
        generator="Doxygen, DocBook",
        content=(*_DOXYGEN, "body"),
        without=_DOCBOOK,
        part=Part.NAMED,
    ),
    "qt5-doc-html": Manual(
        packages=["qt5-doc-html", *(f"{name}5-doc-html" for name in _QT.split())],
        folder="usr/share/qt5/doc",
        starts=("qtdoc/index.html",),
        generator="QDoc",
        content=(".mainContent", "body"),
        without=".sidebar",
        part=Part.NAMED,
    ),
    "fp-docs-3.2.2": Manual(
        packages=["fp-docs-3.2.2"],
        folder=f"{_DOC}/fp-docs/3.2.2",
        starts=("fpctoc.html", "*/index.html"),
        generator="fpdoc, TeX4ht",
        without=".bar, .crosslinks, .navigation",
        part=Part.NAMED,
    ),
    "rust-doc": Manual(
        packages=["rust-doc"],
        folder=f"{_DOC}/rust-doc/html",
        generator="rustdoc, mdBook",
        content=("#main-content", "main", "body"),
        # Beside the names of items stands since when they are stable.
        without=".sub, .sub-container, .srclink, #toggle-all-docs",
        part=Part.NAMED,
    ),
    # Further ones, which may be looked at.
    "libsfml-doc": Manual(
        packages=["libsfml-doc"], folder=f"{_DOC}/libsfml-dev/html", generator="Doxygen", content=_DOXYGEN
    ),
    "netcdf-doc": Manual(packages=["netcdf-doc"], folder=f"{_DOC}/netCDF/html", generator="Doxygen", content=_DOXYGEN),
    "libjfreechart-java-doc": Manual(
        packages=["libjfreechart-java-doc"],
        folder=f"{_DOC}/libjfreechart-java/javadoc",
        generator="Javadoc",
        content=_JAVADOC,
        without=_JAVADOC_WITHOUT,
    ),
    "groovy-doc": Manual(
        packages=["groovy-doc"],
        folder=f"{_DOC}/groovy",
        starts=("api/index.html", "gapi/index.html", "*/overview-summary.html"),
        generator="Javadoc, Groovydoc",
        content=_JAVADOC,
        without=_JAVADOC_WITHOUT,
    ),
    "python-sqlalchemy-doc": Manual(
        packages=["python-sqlalchemy-doc"],
        folder=f"{_DOC}/python-sqlalchemy-doc/html",
        generator="Sphinx (zzzeek)",
        content=_SPHINX,
    ),
    "krb5-doc": Manual(
        packages=["krb5-doc"], folder=f"{_DOC}/krb5-doc", generator="Sphinx (a theme of its own)", content=_SPHINX
    ),
    "varnish-doc": Manual(
        packages=["varnish-doc"], folder=f"{_DOC}/varnish/html", generator="Sphinx (classic)", content=_SPHINX
    ),
    "nodejs-doc": Manual(
        packages=["nodejs-doc"],
        folder=f"{_DOC}/nodejs/api",
        generator="Markdown (a program of its own)",
        content=("#apicontent",),
    ),
    "libxml2-doc": Manual(
        packages=["libxml2-doc"],
        folder=f"{_DOC}/libxml2/html",
        generator="by hand (1990s), gtk-doc",
        content=("table table table td[bgcolor]", "body"),
        without=".navigation, .navheader, .navfooter",
    ),
    "debian-faq-ru": Manual(
        packages=["debian-faq-ru"],
        folder=f"{_DOC}/debian/FAQ/ru",
        starts=("index.ru.html",),
        generator="DocBook",
        without=_DOCBOOK,
    ),
    "debian-faq-zh-cn": Manual(
        packages=["debian-faq-zh-cn"],
        folder=f"{_DOC}/debian/FAQ/zh-cn",
        starts=("index.zh-cn.html",),
        generator="DocBook",
        without=_DOCBOOK,
    ),
    "debian-faq-fr": Manual(
        packages=["debian-faq-fr"],
        folder=f"{_DOC}/debian/FAQ/fr",
        starts=("index.fr.html",),
        generator="DocBook",
        without=_DOCBOOK,
    ),
    "aptitude-doc-es": Manual(
        packages=["aptitude-doc-es"], folder=f"{_DOC}/aptitude/html/es", generator="DocBook", without=_DOCBOOK
    ),
    "maint-guide-ja": Manual(
        packages=["maint-guide-ja"],
        folder=f"{_DOC}/maint-guide-ja/html",
        starts=("index.ja.html",),
        generator="DocBook",
        without=_DOCBOOK,
    ),
    "apt-doc": Manual(
        packages=["apt-doc"],
        folder=f"{_DOC}/apt-doc",
        starts=("*.html/index.html",),
        generator="DocBook",
        without=_DOCBOOK,
    ),
    "gap-doc": Manual(
        packages=["gap-doc"],
        folder="usr/share/gap/doc",
        starts=("*/chap0.html",),
        generator="GAPDoc",
        without=".chlinktop, .chlinkbot, .chlinkprevnexttop, .chlinkprevnextbot, .foot, .mathjaxlink",
    ),
    "exim4-doc-html": Manual(
        packages=["exim4-doc-html"],
        folder=f"{_DOC}/exim4-doc-html",
        starts=("*/index.html",),
        generator="XSLT of its own",
        content=("#content", "body"),
    ),
    "grass-doc": Manual(
        packages=["grass-doc"], folder=f"{_DOC}/grass-doc/html", generator="by programs of its own", without="#toc"
    ),
    "privoxy": Manual(
        packages=["privoxy"],
        folder=f"{_DOC}/privoxy",
        starts=("index.html", "*/index.html"),
        generator="DSSSL (1990s)",
        without=".NAVHEADER, .NAVFOOTER, .navheader, .navfooter",
    ),
    "ntpsec-doc": Manual(
        packages=["ntpsec-doc"],
        folder=f"{_DOC}/ntpsec-doc/html",
        generator="AsciiDoc",
        content=("#content", "body"),
    ),
    "nsis-doc": Manual(
        packages=["nsis-doc"],
        folder=f"{_DOC}/nsis/Docs",
        starts=("Contents.html",),
        generator="Halibut",
    ),
    "libcfitsio-doc": Manual(
        packages=["libcfitsio-doc"],
        folder=f"{_DOC}/libcfitsio-dev",
        starts=("*/index.html",),
        generator="LaTeX2HTML",
        without=".navigation",
    ),
    "tomcat10-docs": Manual(
        packages=["tomcat10-docs"],
        folder="usr/share/tomcat10-docs/docs",
        generator="XSLT of its own",
        content=("#content", "body"),
    ),
    # Chosen by generator, language and size, before any figure of theirs was seen. Look at their totals alone.
    "yard-doc": Manual(
        packages=["yard-doc"],
        folder=f"{_DOC}/yard/doc",
        generator="YARD",
        content=("#content", "body"),
        part=Part.UNSEEN,
    ),
    "libghc-aeson-doc": Manual(
        packages=["libghc-aeson-doc"],
        folder=f"{_DOC}/libghc-aeson-doc/html",
        generator="Haddock",
        content=("#content", "body"),
        part=Part.UNSEEN,
    ),
    "libbatteries-ocaml-doc": Manual(
        packages=["libbatteries-ocaml-doc"],
        folder=f"{_DOC}/libbatteries-ocaml-doc/html/api",
        generator="ocamldoc",
        without=".navbar",
        part=Part.UNSEEN,
    ),
    "libadwaita-1-doc": Manual(
        packages=["libadwaita-1-doc"],
        folder=f"{_DOC}/libadwaita-1",
        generator="gi-docgen",
        content=("#main", "body"),
        part=Part.UNSEEN,
    ),
    "swi-prolog-doc": Manual(
        packages=["swi-prolog-doc"],
        folder="usr/share/swi-prolog/doc",
        starts=("Manual/index.html",),
        generator="LaTeX, by a program of its own",
        without=".navigate",
        part=Part.UNSEEN,
    ),
    "csound-doc": Manual(
        packages=["csound-doc"],
        folder=f"{_DOC}/csound-doc/html",
        generator="DocBook",
        without=_DOCBOOK,
        part=Part.UNSEEN,
    ),
    "developers-reference-ja": Manual(
        packages=["developers-reference-ja"],
        folder="usr/share/developers-reference/ja",
        generator="Sphinx (classic)",
        content=_SPHINX,
        part=Part.UNSEEN,
    ),
    "aptitude-doc-cs": Manual(
        packages=["aptitude-doc-cs"],
        folder=f"{_DOC}/aptitude/html/cs",
        generator="DocBook",
        without=_DOCBOOK,
        part=Part.UNSEEN,
    ),
    "mpich-doc": Manual(
        packages=["mpich-doc"], folder=f"{_DOC}/mpich-doc/html", generator="doctext (1990s)", part=Part.UNSEEN
    ),
    "harden-doc": Manual(
        packages=["harden-doc"],
        folder=f"{_DOC}/harden-doc/html",
        starts=("*/index.html",),
        generator="Publican",
        without=_PUBLICAN,
        part=Part.UNSEEN,
    ),
}
