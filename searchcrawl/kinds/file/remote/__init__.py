"""Folders on servers: SFTP, SMB, WebDAV, S3."""
